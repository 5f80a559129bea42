"""Follow ingestions in the ledger and their job runs until each has a final state."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from access.ingestions.outcomes import attempt, published_together, waits
from access.ingestions.shared_runs import places
from functions.adapters.all import Adapters
from functions.adapters.emr import RunState, UnknownRun
from functions.model import queueing, steps
from functions.model.ingestion import Ingestion, State
from functions.model.merge_commit import rows_of
from lakegate.audit.report import Status
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject, ingestion_id
from lakegate.text import one_line

_PAUSE = 0.2


@dataclass(frozen=True)
class TrackedIngestion:
    """An ingestion as last read; `run` is its job run's state while it waits for one.

    An ingestion that is not in the ledger yet has no times. `load` describes its place,
    how many files wait, and why no run is started, while it waits for a job run.
    """

    ingestion: Ingestion
    run: RunState | None = None
    load: str = ""

    @property
    def name(self) -> str:
        """Return the file's name without folders, or the changed table."""
        return self.ingestion.name

    @property
    def blocking(self) -> int:
        """Return how many checks prevent publishing."""
        blocks = (Status.FAIL, Status.ERROR)
        return sum(self.ingestion.audit.check_counts.get(status, 0) for status in blocks)

    def seconds(self, step: str) -> float | None:
        """Return the seconds from landing to the end of a step; None before that."""
        times = self.ingestion.times
        if step not in times or "landed" not in times:
            return None
        took = datetime.fromisoformat(times[step]) - datetime.fromisoformat(times["landed"])
        return max(0.0, took.total_seconds())


Show = Callable[[list[TrackedIngestion]], None]


def dropped(landed: LandedObject) -> TrackedIngestion:
    """Return the ingestion of a file that was just uploaded."""
    return TrackedIngestion(Ingestion(id=ingestion_id(landed), landed=landed))


def to_come(id_: str) -> TrackedIngestion:
    """Return an ingestion of which only the whole id is known."""
    return TrackedIngestion(Ingestion(id=id_, landed=LandedObject("", "", "", etag="", size=0)))


def ended(item: TrackedIngestion) -> bool:
    """Return whether the ingestion has a final state."""
    return item.ingestion.ended


def finished(item: TrackedIngestion) -> bool:
    """Return whether all work is done, including notifications and deleting a published branch."""
    return ended(item) and not steps.unfinished(item.ingestion)


def follow(
    adapters: Adapters,
    tracked: Iterable[TrackedIngestion],
    done: Callable[[TrackedIngestion], bool],
    seconds: float,
    show: Show,
) -> list[TrackedIngestion]:
    """Show the progress until all ingestions are `done`; return them as last read.

    Raises LakegateError TIMED_OUT after `seconds`, with the unfinished files and their states.
    """
    deadline = time.monotonic() + seconds
    current = list(tracked)
    while True:
        current = _with_load(adapters, _read_again(adapters, current, done))
        show(current)
        if all(map(done, current)):
            return current
        if time.monotonic() > deadline:
            raise _timed_out([item for item in current if not done(item)], seconds)
        time.sleep(_PAUSE)


def sentence(item: TrackedIngestion) -> str:
    """Describe the state of an ingestion in one line."""
    ingestion = item.ingestion
    if not ingestion.times:
        return "uploaded" if ingestion.landed.key else "the ledger has no such ingestion yet"
    if ingestion.awaits_shared_run or item.load:
        return waits(ingestion, item.load)
    many = sum(ingestion.audit.check_counts.values())
    words = {
        State.BRANCHED: f"on branch {ingestion.branch}",
        State.SUBMITTED: f"job {job_state(item)} on branch {ingestion.branch}",
        State.AUDITED: f"audit passed, {many} checks; publishing",
        State.PUBLISHED: f"published {_published(ingestion)}{_warnings(ingestion)}",
    }
    if ingestion.state is State.REJECTED and item.blocking:
        return f"rejected, {item.blocking} of {many} checks failed"
    first = ingestion.reason.message.partition("\n")[0] if ingestion.reason else ""
    reason = f", {first}" if first else ""
    return words.get(ingestion.state, f"{ingestion.state}{reason}")


def _published(ingestion: Ingestion) -> str:
    return f"{rows_of(ingestion)} {published_together(ingestion)}".rstrip()


def _warnings(ingestion: Ingestion) -> str:
    many = len(ingestion.audit.warnings)
    return f", {many} {'warning' if many == 1 else 'warnings'}" if many else ""


def job_state(item: TrackedIngestion) -> str:
    """Return the job run's state, with the attempt and its reason from the second on."""
    run = item.run or RunState.SUBMITTED
    word = "ended" if run.terminal else run.value.lower()
    return word if item.ingestion.attempt == 1 else f"{word}, attempt {attempt(item.ingestion)}"


def _read_again(
    adapters: Adapters, tracked: list[TrackedIngestion], done: Callable[[TrackedIngestion], bool]
) -> list[TrackedIngestion]:
    """Return them as the ledger has them now; those that are done are read no more."""
    ids = [item.ingestion.id for item in tracked if not done(item)]
    now = {each.id: each for each in adapters.ledger.together(ids)}
    return [
        replace(item, ingestion=known, run=_run_state(adapters, known))
        if (known := now.get(item.ingestion.id))
        else item
        for item in tracked
    ]


def _with_load(adapters: Adapters, tracked: list[TrackedIngestion]) -> list[TrackedIngestion]:
    """Return those that wait for a job run with their place and the load, read once."""
    waiting = [item.ingestion for item in tracked if queueing.awaits_run(item.ingestion)]
    words = places(adapters, waiting)
    return [replace(item, load=words.get(item.ingestion.id, "")) for item in tracked]


def _run_state(adapters: Adapters, ingestion: Ingestion) -> RunState | None:
    if ingestion.state is not State.SUBMITTED:
        return None
    try:
        return adapters.jobs.get(ingestion.job_run).state
    except UnknownRun:
        return None  # EMR deletes old runs


def _timed_out(hanging: list[TrackedIngestion], seconds: float) -> LakegateError:
    lines = [f"  {_named(item.ingestion)}: {sentence(item)}" for item in hanging]
    message = "\n".join([f"timed out after {seconds:.0f} s, still waiting for:", *lines])
    return LakegateError(
        "TIMED_OUT", f"{message}\nThey continue. Check the stack with `lakegate status`."
    )


def _named(ingestion: Ingestion) -> str:
    return one_line(ingestion.landed.key) or ingestion.id
