"""Shared runs as people see them: those that are up or failed lately, and the files that wait."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from access.ingestions.outcomes import files_before, files_waiting, waits
from functions.adapters.all import Adapters
from functions.adapters.emr import JobRun, RunState, UnknownRun
from functions.model import queueing
from functions.model.ingestion import Ingestion
from functions.model.notes.slot import is_shared_name
from functions.pipeline.start.spending import why_wait
from lakegate import times
from lakegate.errors import Transient

_LATELY = timedelta(hours=1)


@dataclass(frozen=True)
class SharedRuns:
    """The shared runs of a deployment.

    `most` is how many may be up at a time, `files` about how many files wait or are in work. `up`
    are the runs that have not ended, `failed` those that were started in the last hour and failed.
    """

    most: int
    files: int
    up: tuple[JobRun, ...]
    failed: tuple[JobRun, ...]


def shared_runs(adapters: Adapters) -> SharedRuns:
    """Return the shared runs of a deployment. Raises LakegateError without permission."""
    since = times.text(datetime.fromisoformat(adapters.now()) - _LATELY)
    lately = (run for run in adapters.jobs.runs(since) if is_shared_name(run.name))
    return SharedRuns(
        most=adapters.settings.shared_runs,
        files=adapters.work.size(),
        up=tuple(runs_up(adapters)),
        failed=tuple(run for run in lately if run.state is RunState.FAILED),
    )


def runs_up(adapters: Adapters) -> Iterator[JobRun]:
    """Yield the runs of the slots that have not ended. Raises LakegateError without permission."""
    for slot in map(adapters.ledger.slot, range(adapters.settings.shared_runs)):
        if slot.run:
            with suppress(UnknownRun):  # EMR deletes old runs
                run = adapters.jobs.get(slot.run)
                if not run.has_ended:
                    yield run


def load(adapters: Adapters) -> str:
    """Describe about how many files wait for shared runs, and why no job run is started now.

    "" if none does or SQS does not say, and one may be started. It is only told to people, who may
    lack the right to count messages: that stops nothing else.
    """
    try:
        files = files_waiting(adapters.work.size())
    except Transient:
        files = ""
    return "; ".join(filter(None, (files, why_wait(adapters))))


def wait_words(adapters: Adapters, one: Ingestion) -> str:
    """Describe that a file waits for a job run, and why; "" if it does not, or is started soon."""
    if one.awaits_shared_run:
        return waits(one, load(adapters))
    why = why_wait(adapters) if queueing.awaits_run(one) else ""
    return waits(one, why) if why else ""


def places(adapters: Adapters, waiting: Sequence[Ingestion]) -> dict[str, str]:
    """Describe by id, for files that wait for job runs, what is before each, and why it waits.

    The ledger is read once. One that is started soon is left out.
    """
    if not waiting:
        return {}
    why = why_wait(adapters)
    before = _before(adapters, [each for each in waiting if each.awaits_shared_run])
    words = {id_: "; ".join(filter(None, (place, why))) for id_, place in before.items()}
    return {each.id: why for each in waiting if why} | words


def _before(adapters: Adapters, waiting: Sequence[Ingestion]) -> dict[str, str]:
    if not waiting:
        return {}
    last = max(each.landed.landed_at for each in waiting)
    due = adapters.ledger.due_landings(last)
    return {each.id: files_before(bisect_left(due, each.landed.landed_at)) for each in waiting}
