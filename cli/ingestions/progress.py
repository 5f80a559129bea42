"""Show the progress of ingestions: a live table on a terminal, else a line per step."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from access.ingestions.follow import Show, TrackedIngestion, job_state, sentence
from cli.console import terminal
from functions.model.ingestion import Ingestion, State


@contextmanager
def show_progress(console: Console) -> Iterator[Show]:
    """Yield a function that shows progress: a live table on a terminal, else a line per step."""
    began = time.monotonic()
    if not console.is_terminal:
        yield _lines(console, began)
        return
    with Live(console=console, refresh_per_second=10) as live:
        yield lambda tracked: live.update(progress_table(tracked, time.monotonic() - began))


def _lines(console: Console, began: float) -> Show:
    printed: set[tuple[str, str]] = set()  # a file in a group may begin again many times

    def show(tracked: list[TrackedIngestion]) -> None:
        for item in tracked:
            step = item.ingestion.id, sentence(replace(item, load=""))  # not per number of files
            if step not in printed:
                printed.add(step)
                seconds = f"{time.monotonic() - began:6.1f} s"
                console.print(f"{seconds}  {item.name}: {sentence(item)}", soft_wrap=True)

    return show


_DONE = Text("✓", "green")
_NONE = Text("")


def progress_table(tracked: Iterable[TrackedIngestion], elapsed: float = 0.0) -> Table:
    """Return a table of ingestions and their steps, with the seconds from landing to the end.

    Before the final state, the seconds are those waited, `elapsed`.
    """
    made = terminal.table(
        "file", "landed", "branch", "job", "audit", "main", "seconds", right=["seconds"]
    )
    for item in tracked:
        took = item.seconds(item.ingestion.state.value) if item.ingestion.ended else elapsed
        made.add_row(
            item.name,
            _DONE if item.ingestion.times else _busy("uploaded"),
            _branch(item.ingestion),
            _job(item),
            _audit(item),
            _main(item.ingestion),
            Text("" if took is None else f"{took:.1f}", "" if item.ingestion.ended else "dim"),
        )
    return made


def _branch(ingestion: Ingestion) -> RenderableType:
    if ingestion.branch:
        return _DONE
    if ingestion.ended or not ingestion.times or ingestion.awaits_shared_run:
        return _NONE
    return _busy("creating")


def _job(item: TrackedIngestion) -> RenderableType:
    if item.ingestion.state is State.SUBMITTED:
        return _busy(job_state(item))
    if item.ingestion.awaits_shared_run or item.load:
        return _busy(item.load or "waits for a shared run")
    return _DONE if item.ingestion.job_run else _NONE


def _audit(item: TrackedIngestion) -> Text:
    many = sum(item.ingestion.audit.check_counts.values())
    if not many:
        return _NONE
    if item.blocking:
        return Text(f"✗ {item.blocking} of {many}", "red")
    passed = Text(f"✓ {many}", "green")
    if warnings := len(item.ingestion.audit.warnings):
        passed.append(f", ! {warnings}", "yellow")
    return passed


def _main(ingestion: Ingestion) -> RenderableType:
    if ingestion.state is State.PUBLISHED:
        removes = ingestion.change or ingestion.terms.is_ordered
        less = f" −{ingestion.audit.replaced_rows:,}" if removes else ""  # noqa: RUF001
        return Text(f"+{ingestion.audit.rows:,}{less} rows", "green")
    if ingestion.ended:
        return terminal.state(ingestion)
    return _busy("publishing") if ingestion.state is State.AUDITED else _NONE


@cache
def _busy(words: str) -> Spinner:
    """Return the spinner for a step. Each text has one spinner, as a new one would start over."""
    return Spinner("dots", Text(words, "yellow"), style="yellow")
