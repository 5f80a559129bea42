"""Dropped files on their way: looks at the ledger and the job runs until each has ended."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache

from rich.console import RenderableType
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from access.outcomes import published
from cli import terminal
from functions.adapters.all import Adapters
from functions.adapters.emr import RunState, UnknownRun
from functions.adapters.ledger import UnknownIngestion
from functions.model.ingestion import Ingestion, State
from lakegate.errors import LakegateError
from lakegate.landing import LandedObject, ingestion_id
from lakegate.report import Status

_PAUSE = 0.2


@dataclass(frozen=True)
class Sight:
    """A dropped file as it was seen last; `run` is its job run's state while it has one to await.

    An ingestion that the ledger does not know yet has no times.
    """

    ingestion: Ingestion
    run: RunState | None = None

    @property
    def name(self) -> str:
        """The file's name, without the folders of its key, or which table is changed."""
        return self.ingestion.name

    @property
    def blocking(self) -> int:
        """How many checks say that the file must not be published."""
        blocks = (Status.FAIL, Status.ERROR)
        return sum(self.ingestion.check_counts.get(status, 0) for status in blocks)

    def seconds(self, step: str) -> float | None:
        """The seconds from landing to the end of a step; None while it is not done."""
        times = self.ingestion.times
        if step not in times or "landed" not in times:
            return None
        took = datetime.fromisoformat(times[step]) - datetime.fromisoformat(times["landed"])
        return max(0.0, took.total_seconds())


Show = Callable[[list[Sight]], None]


def dropped(landed: LandedObject) -> Sight:
    """A file that was just put, and that the pipeline has yet to notice."""
    return Sight(Ingestion(id=ingestion_id(landed), landed=landed))


def ended(sight: Sight) -> bool:
    """Whether the verdict is final."""
    return sight.ingestion.ended


def finished(sight: Sight) -> bool:
    """Whether nothing is due any more: people are told, a published branch is gone."""
    return ended(sight) and not sight.ingestion.unfinished


def follow(
    adapters: Adapters,
    sights: Iterable[Sight],
    done: Callable[[Sight], bool],
    seconds: float,
    show: Show,
) -> list[Sight]:
    """Show the files' way until all are `done`; returns how they were seen last.

    Raises LakegateError TIMED_OUT, which names the files that hang and where, after `seconds`.
    """
    deadline = time.monotonic() + seconds
    seen = list(sights)
    while True:
        seen = [sight if done(sight) else _look(adapters, sight) for sight in seen]
        show(seen)
        if all(map(done, seen)):
            return seen
        if time.monotonic() > deadline:
            raise _timed_out([sight for sight in seen if not done(sight)], seconds)
        time.sleep(_PAUSE)


def sentence(sight: Sight) -> str:
    """Where a file stands, in words."""
    ingestion = sight.ingestion
    if not ingestion.times:
        return "uploaded"
    many = sum(ingestion.check_counts.values())
    words = {
        State.BRANCHED: f"on branch {ingestion.branch}",
        State.SUBMITTED: f"job {job_state(sight)} on branch {ingestion.branch}",
        State.AUDITED: f"audit passed, {many} checks; publishing",
        State.PUBLISHED: f"published {published(ingestion)}{_warnings(ingestion)}",
    }
    if ingestion.state is State.REJECTED and sight.blocking:
        return f"rejected, {sight.blocking} of {many} checks failed"
    reason = f", {ingestion.reason.message}" if ingestion.reason else ""
    return words.get(ingestion.state, f"{ingestion.state}{reason}")


def _warnings(ingestion: Ingestion) -> str:
    many = len(ingestion.warnings)
    return f", {many} {'warning' if many == 1 else 'warnings'}" if many else ""


def job_state(sight: Sight) -> str:
    """The job run's state in a word, and which attempt it is, from the second on."""
    attempt, run = sight.ingestion.attempt, sight.run or RunState.SUBMITTED
    word = "ended" if run.terminal else run.value.lower()
    return word if attempt == 1 else f"{word}, attempt {attempt}"


def _look(adapters: Adapters, sight: Sight) -> Sight:
    try:
        ingestion = adapters.ledger.get(sight.ingestion.id)
    except UnknownIngestion:
        return sight
    return replace(sight, ingestion=ingestion, run=_run_state(adapters, ingestion))


def _run_state(adapters: Adapters, ingestion: Ingestion) -> RunState | None:
    if ingestion.state is not State.SUBMITTED:
        return None
    try:
        return adapters.jobs.get(ingestion.job_run).state
    except UnknownRun:
        return None  # EMR forgets its runs after a while


def _timed_out(hanging: list[Sight], seconds: float) -> LakegateError:
    lines = [f"  {sight.ingestion.landed.key}: {sentence(sight)}" for sight in hanging]
    message = "\n".join([f"after {seconds:.0f} s these have not come to their end:", *lines])
    return LakegateError("TIMED_OUT", f"{message}\nThey go on; `lakegate status` tells what is up.")


# How far dropped files are, on a terminal: a line for each, a column for each step.

_DONE = Text("✓", "green")
_NONE = Text("")


def way(sights: Iterable[Sight], elapsed: float = 0.0) -> Table:
    """Dropped files and how far each is, with its seconds from landing to its end.

    While that is to come, the seconds are those that a person has waited, `elapsed`.
    """
    made = terminal.table(
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
    many = sum(sight.ingestion.check_counts.values())
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
        return terminal.coloured(ingestion.state)
    return _busy("publishing") if ingestion.state is State.AUDITED else _NONE


@cache
def _busy(words: str) -> Spinner:
    """What is being done. One object for the same words, or the spinner would start anew."""
    return Spinner("dots", Text(words, "yellow"), style="yellow")
