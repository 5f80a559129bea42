"""How far dropped files are, on a terminal: a line for each, a column for each step."""

from collections.abc import Iterable
from functools import cache

from rich.console import RenderableType
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from cli import view
from cli.follow import Sight, job_state
from functions.ingestion import Ingestion, State

_DONE = Text("✓", "green")
_NONE = Text("")


def way(sights: Iterable[Sight], elapsed: float = 0.0) -> Table:
    """Dropped files and how far each is, with its seconds from landing to its end.

    While that is to come, the seconds are those that a person has waited, `elapsed`.
    """
    made = view.table(
        "file", "landed", "branch", "job", "audit", "main", "seconds", right=["seconds"]
    )
    for sight in sights:
        took = sight.seconds(sight.ingestion.state.value) if sight.ingestion.ended else elapsed
        made.add_row(
            sight.name,
            _DONE if sight.ingestion.times else _busy("uploaded"),
            _branch(sight.ingestion),
            _job(sight),
            _audit(sight),
            _main(sight.ingestion),
            Text("" if took is None else f"{took:.1f}", "" if sight.ingestion.ended else "dim"),
        )
    return made


def _branch(ingestion: Ingestion) -> RenderableType:
    if ingestion.branch:
        return _DONE
    return _NONE if ingestion.ended or not ingestion.times else _busy("cutting")


def _job(sight: Sight) -> RenderableType:
    if sight.ingestion.state is State.SUBMITTED:
        return _busy(job_state(sight))
    return _DONE if sight.ingestion.job_run else _NONE


def _audit(sight: Sight) -> Text:
    many = sum(sight.ingestion.tally.values())
    if not many:
        return _NONE
    if sight.blocking:
        return Text(f"✗ {sight.blocking} of {many}", "red")
    passed = Text(f"✓ {many}", "green")
    if warnings := len(sight.ingestion.warnings):
        passed.append(f", ! {warnings}", "yellow")
    return passed


def _main(ingestion: Ingestion) -> RenderableType:
    if ingestion.state is State.PUBLISHED:
        less = f" −{ingestion.replaced_rows:,}" if ingestion.change else ""  # noqa: RUF001
        return Text(f"+{ingestion.rows:,}{less} rows", "green")
    if ingestion.ended:
        return view.coloured(ingestion.state)
    return _busy("publishing") if ingestion.state is State.AUDITED else _NONE


@cache
def _busy(words: str) -> Spinner:
    """What is being done. One object for the same words, or the spinner would start anew."""
    return Spinner("dots", Text(words, "yellow"), style="yellow")
