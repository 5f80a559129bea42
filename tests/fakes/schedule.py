"""Events of stories in which many processes run at once.

A process begins, and stops before its first call to an outside system. At later events of the story
it makes some calls, or a fault strikes its next one, regardless of the others.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial

from functions.adapters.ledger.notes import Moved
from functions.model.ingestion import ALERTED, Ingestion, State
from functions.operations.compaction.compact import start_due
from functions.operations.decisions import failed
from functions.operations.recovery import rebuild_ledger
from functions.operations.recovery.realign import realign
from functions.operations.upkeep.daily import upkeep
from functions.operations.upkeep.expire import expire
from functions.pipeline.outcome.baselines import accept
from functions.pipeline.start.intake import retract
from lakegate.errors import LakegateError
from lakegate.job.change import retraction
from lakegate.job.landing import ingestion_id
from tests.fakes.backfills import REQUESTS, bring
from tests.fakes.deployment import Deployment
from tests.fakes.faults import Fault, die, unavailable
from tests.fakes.job import passed
from tests.fakes.processes import Process
from tests.fakes.stage import File, Stage
from tests.fakes.upkeep_events import CleanUp


class Work(Enum):
    """The work of a process."""

    MESSAGE = "a message is delivered"
    MESSAGES = "three messages are delivered at once"
    JOB = "a job run is carried out, for which there may be a driver already"
    SWEEP = "the sweep runs"
    REPLAY = "a command replays a failed ingestion"
    MEND = "a command replays a failed ingestion, after its file was corrected"
    PUBLISH = "a command publishes a failed ingestion anyway"
    DISCARD = "a command discards a failed ingestion"
    ACCEPT = "a command accepts a drift as the new baseline"
    EXPIRE = "a command expires all failed ingestions of the day before"
    REBUILD = "a command rebuilds the ledger"
    RETRACT = "a command asks that the rows of a published file are removed"
    COMPACT = "the schedule starts compactions"
    REALIGN = "a command realigns the ledger with a restored catalog"
    BACKFILL = "a command brings existing files of another bucket, for a while"
    CLEAN_UP = "two days pass, and upkeep deletes dead files, at the second one beside others"


@dataclass(frozen=True)
class Begin:
    """A process begins, with the `nth` message, job run or failed ingestion."""

    work: Work
    nth: int = 0

    def happen(self, stage: Stage) -> None:
        """Continue it to its first call."""
        process = Process(partial(_failing, _WORK[self.work](stage, self.nth)))
        stage.processes.append(process)
        process.go()


@dataclass(frozen=True)
class Go:
    """A process makes some calls."""

    nth: int = 0
    calls: int = 1

    def happen(self, stage: Stage) -> None:
        """Make the calls; the process may end earlier."""
        for _ in range(self.calls):
            if process := _nth(stage, self.nth):
                process.go()


@dataclass(frozen=True)
class Finish:
    """All processes go on to their ends."""

    def happen(self, stage: Stage) -> None:
        """End one after the other."""
        for process in stage.processes:
            process.end()


class Trouble(Enum):
    """A fault at a call."""

    UNAVAILABLE = "it fails"
    DONE_YET_UNAVAILABLE = "it is done, and seems to have failed"
    DIES_BEFORE = "its process dies before it"
    DIES_AFTER = "its process dies after it"
    DONE_YET_MOVED = "a save is done, and done again by a client that had no answer"
    FOREIGN = "pyiceberg raises an unknown error"


@dataclass(frozen=True)
class Break:
    """A fault strikes the next call of a process."""

    nth: int
    trouble: Trouble

    def happen(self, stage: Stage) -> None:
        """Strike the call, then continue the process to its next one."""
        if process := _nth(stage, self.nth):
            strike(stage, process, self.trouble)


def strike(stage: Stage, process: Process, trouble: Trouble) -> None:
    """Strike the next call of a process, if such a fault may, and continue the process."""
    if _can_meet(process.call, trouble):
        if process.call.startswith("job_"):
            stage.excused |= {File.CRASHING.end, File.CONTRADICTED.end}
        process.go(_FAULTS[trouble](stage))


def _failing(work: Callable[[], object]) -> None:
    """Do the work, which may fail: the next command or event tries again."""
    with suppress(LakegateError, _Foreign):
        work()


def _nth(stage: Stage, nth: int) -> Process | None:
    """Return one of the running processes, the newest first, or None if there is none."""
    live = stage.under_way[::-1]
    return live[nth % len(live)] if live else None


def _can_meet(call: str, trouble: Trouble) -> bool:
    if trouble is Trouble.FOREIGN:
        return call.startswith("tables.")
    return trouble is not Trouble.DONE_YET_MOVED or call == "ledger.save"


class _Foreign(ValueError):
    """An error of pyiceberg that nobody foresaw."""


def _moved(stage: Stage) -> None:
    raise Moved([stage.deployment.ledger.newest])


def _foreign() -> None:
    raise _Foreign("an odd property of the table")


_FAULTS: dict[Trouble, Callable[[Stage], Fault]] = {
    Trouble.UNAVAILABLE: lambda stage: Fault(unavailable),
    Trouble.DONE_YET_UNAVAILABLE: lambda stage: Fault(unavailable, "after"),
    Trouble.DIES_BEFORE: lambda stage: Fault(die),
    Trouble.DIES_AFTER: lambda stage: Fault(die, "after"),
    Trouble.DONE_YET_MOVED: lambda stage: Fault(partial(_moved, stage), "after"),
    Trouble.FOREIGN: lambda stage: Fault(_foreign),
}


def _message(stage: Stage, nth: int) -> Callable[[], object]:
    return _messages(stage, nth, 1)


def _messages(stage: Stage, nth: int, several: int = 3) -> Callable[[], object]:
    """Deliver the waiting messages; if there are none, end job runs first."""
    if not stage.deployment.waits:
        stage.deployment.run_jobs()
    return lambda: stage.deployment.deliver_together(nth, several)


def _job(stage: Stage, nth: int) -> Callable[[], object]:
    """Carry out a job run; if none was started, deliver the waiting messages first."""
    if not stage.deployment.runs:
        stage.deployment.deliver()
    return lambda: stage.deployment.run_one_job(nth, in_steps=True)


def _sweep(stage: Stage, nth: int) -> Callable[[], object]:
    return stage.deployment.sweep


def _command(
    give: Callable[[Deployment, Ingestion], object],
) -> Callable[[Stage, int], Callable[[], object]]:
    """Return the work of a command for an ingestion in the state in which it was listed."""

    def given(stage: Stage, nth: int) -> Callable[[], object]:
        stage.excused.add("rejected SUPERSEDED")  # a newer version may be published meanwhile
        seen = [i for i in stage.deployment.ledger.all() if i.state in ALERTED]
        if not seen:
            return lambda: None
        return partial(give, stage.deployment, seen[nth % len(seen)])

    return given


def _mend(stage: Stage, nth: int) -> Callable[[], object]:
    seen = [i for i in stage.deployment.ledger.all() if i.state in ALERTED]
    for each in seen[nth % len(seen) :][:1] if seen else ():
        file = stage.files.get(each.id, File.GOOD)  # a backfill brought the others
        if file not in (File.EMPTY, File.UNCLAIMED):
            stage.deployment.script(each.landed, passed)
            stage.files[each.id] = File.GOOD
            stage.excused.add(file.end)
    return _replay(stage, nth)


def _publish(stage: Stage, nth: int) -> Callable[[], object]:
    """Publish it: the table may then contain a key twice."""
    reasons = ("", " CHECKS_FAILED", " LIKELY_DUPLICATE", " CANNOT_REPLACE", " SUPERSEDED")
    stage.excused |= {f"published{reason}" for reason in reasons}
    stage.deployment.keys.clear()
    return _published(stage, nth)


def _expire(stage: Stage, nth: int) -> Callable[[], object]:
    stage.pass_day()
    return lambda: list(expire(stage.deployment.adapters, 0))


def _rebuild(stage: Stage, nth: int) -> Callable[[], object]:
    # What a shared run has judged, and not told yet, looks lost, and begins another attempt.
    stage.forgotten += 1
    stage.deployment.work.sent_twice = True
    return lambda: list(rebuild_ledger.rebuild(stage.deployment.adapters))


def _realign(stage: Stage, nth: int) -> Callable[[], object]:
    return lambda: realign(stage.deployment.adapters)


def _retract(stage: Stage, nth: int) -> Callable[[], object]:
    known = [i for i in stage.deployment.ledger.all() if i.state is State.PUBLISHED]
    if not known:
        return lambda: None
    published = known[nth % len(known)]
    asked = retraction(published.table, published.id).landed(stage.deployment.lake.bucket)
    stage.files[ingestion_id(asked)] = File.GOOD  # whether it is recorded or not
    stage.excused |= {"errored TABLE_GONE", "errored ROWS_SCATTERED", "errored OBJECT_GONE"}
    return lambda: retract(stage.deployment.adapters, published, "Ann", "wrong day")


def _compact(stage: Stage, nth: int) -> Callable[[], object]:
    stage.deployment.tables.fewest = 2
    stage.excused |= {"errored ROWS_SCATTERED", "rejected CANNOT_REPLACE"}
    return lambda: list(start_due(stage.deployment.adapters))


def _clean_up(stage: Stage, nth: int) -> Callable[[], object]:
    CleanUp(1).happen(stage)
    stage.pass_day()
    return lambda: upkeep(stage.deployment.adapters)


def _backfill(stage: Stage, nth: int) -> Callable[[], object]:
    return lambda: bring(stage, REQUESTS[nth % len(REQUESTS)])


_replay = _command(lambda deployment, seen: failed.replay(deployment.adapters, seen, by="Ann"))
_published = _command(
    lambda deployment, seen: failed.publish_anyway(deployment.adapters, seen, "Ann", "it is known")
)
_WORK: dict[Work, Callable[[Stage, int], Callable[[], object]]] = {
    Work.MESSAGE: _message,
    Work.MESSAGES: _messages,
    Work.JOB: _job,
    Work.SWEEP: _sweep,
    Work.REPLAY: _replay,
    Work.MEND: _mend,
    Work.PUBLISH: _publish,
    Work.DISCARD: _command(lambda d, seen: failed.discard(d.adapters, seen, by="Ann")),
    Work.ACCEPT: _command(lambda d, seen: accept(d.adapters, seen, "Ann", "it is normal now")),
    Work.EXPIRE: _expire,
    Work.REBUILD: _rebuild,
    Work.RETRACT: _retract,
    Work.COMPACT: _compact,
    Work.BACKFILL: _backfill,
    Work.CLEAN_UP: _clean_up,
    Work.REALIGN: _realign,
}
