"""Have small files ingested by shared runs: queue them, and keep runs up that take them.

    a file that may share a run → its job spec goes to the work queue; it has no branch yet
    no run is up → start one; each slot holds one run, and changes by conditional writes only
    the run may not touch the table → the file has a run of its own
    many files wait → start more runs, one for each 250, up to the number of slots
    a run ended while files wait → start the next
    fewer messages than files wait → some messages were lost: queue files again

A message that comes twice does no harm: only the first report of an attempt counts, and only an
ingestion that still waits takes a verdict (judged.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from math import ceil

from functions.adapters.all import Adapters
from functions.adapters.emr import JobRun, RunState, UnknownRun
from functions.adapters.emr_run_policy import widened
from functions.adapters.ledger.notes import Moved
from functions.model.ingestion import Ingestion, State
from functions.model.notes.slot import Slot, shared_name
from functions.pipeline.start.landing_order import place
from functions.pipeline.start.spending import look, start_within_budget
from functions.settings import Settings
from functions.telemetry import logger, metrics
from lakegate import times
from lakegate.job.jobspec import JobSpec
from lakegate.job.shared_run import ALL, SharedRun, Turn

_FILES_PER_RUN = 250  # that wait before one more run is started
MOST_AGAIN = 500  # files that one sweep queues again: it has time for no more
_SETTLED = timedelta(hours=1)  # after which a file's verdict is recorded, and SQS counts rightly


def may_share(ingestion: Ingestion, settings: Settings) -> bool:
    """Return whether a shared run may take it: a small file.

    An attempt after a failure, or after an error, has a run of its own: it may have killed one.
    """
    is_apart = ingestion.leaves_group or ingestion.terms.isolation == "own"
    if not settings.shared_runs or is_apart or ingestion.parts:
        return False
    may_start = ingestion.state is State.LANDED and State.ERRORED not in ingestion.times
    return may_start and _is_light(ingestion, settings.small_file_bytes)


def is_small(ingestion: Ingestion, most: int) -> bool:
    """Return whether small workers suffice: for at most `most` bytes, and no other data to read.

    Bytes do not say how much memory a file takes: after a failure it gets workers of full size.
    """
    reads_more = ingestion.terms.checks_whole_table or ingestion.terms.reads_others
    merges = ingestion.terms.write_mode == "upsert"
    return not (reads_more or merges) and _is_light(ingestion, most)


def _is_light(ingestion: Ingestion, most: int) -> bool:
    if ingestion.failures or ingestion.change or ingestion.is_reaudit:
        return False
    return sum(part.size for part in ingestion.parts) + ingestion.landed.size <= most


def reaches(adapters: Adapters, ingestion: Ingestion) -> bool:
    """Return whether a shared run, which is up then, may touch its table, and all that it reads.

    Which other tables a check reads is not known, so then no table may be apart from the run. The
    run comes before the message: a failure to start it must not leave one behind.
    """
    slot = adapters.ledger.slot(0)
    if not slot.is_trusted(adapters.now()):  # one upload every ten seconds
        for number in {0, *slots_needed(adapters)}:
            keep_up(adapters, number)
        slot = adapters.ledger.slot(0)
    return slot.may_touch(ingestion.table) and not (ingestion.terms.reads_others and slot.apart)


def queue(
    adapters: Adapters, members: Sequence[Ingestion], message: JobSpec | Turn
) -> list[Ingestion]:
    """Record that the ingestions wait for a shared run, and queue the message about them."""
    at = adapters.now()
    saved = adapters.ledger.save_all([m.step("queued", at, is_shared=True) for m in members])
    adapters.work.send(message)
    logger.info("queued for a shared run", extra={"files": len(saved)})
    return saved


def files_waiting(adapters: Adapters) -> int:
    """Return about how many files wait in the work queue, none where no run takes them."""
    return adapters.work.size() if adapters.settings.shared_runs else 0


class Queued:
    """The files that wait, as a sweep lists them, from which it learns whose messages are lost.

    Each of them has a message, which waits or is in hand; those that take turns have one
    together, their turn, which is queued again with the first of them. So fewer messages than files
    prove that some are lost, however long the others wait. Which ones, SQS does not say: most
    likely they are those of the files that landed first: only these are kept, of however many that
    wait. A second message does no harm, and is counted, too.
    """

    def __init__(self, adapters: Adapters, before: str) -> None:
        """Count the messages; only files that were queued before a time may be queued again."""
        self.at = adapters.now()
        self._messages = files_waiting(adapters)
        settled = times.earlier(self.at, _SETTLED)
        self._before = min(before, settled) if self._messages else before
        self._turns: dict[str, Ingestion] = {}
        self._alone, self._first = 0, list[Ingestion]()

    def add(self, waiting: Ingestion) -> None:
        """Note a file that was queued before the messages were counted; the earliest one first."""
        if waiting.takes_turns:
            known = self._turns.setdefault(waiting.table, waiting)
            self._turns[waiting.table] = min(known, waiting, key=place)
            return
        self._alone += 1
        if waiting.saved_at < self._before and len(self._first) < MOST_AGAIN:
            self._first.append(waiting)

    @property
    def lost(self) -> Sequence[Ingestion]:
        """Return files to queue again, no more than lack a message, the earliest one first."""
        lacking = max(len(self._turns) + self._alone - self._messages, 0)
        turns = [each for each in self._turns.values() if each.saved_at < self._before]
        return sorted(turns + self._first, key=place)[: min(lacking, MOST_AGAIN)]


def slots_needed(adapters: Adapters) -> Iterator[int]:
    """Yield the slots whose runs the waiting files need, none while no file waits."""
    needed = ceil(files_waiting(adapters) / _FILES_PER_RUN)
    yield from range(min(needed, adapters.settings.shared_runs))


def keep_up(adapters: Adapters, number: int) -> None:
    """Start a run in a slot unless it holds one that is up."""
    try:
        _fill(adapters, adapters.ledger.slot(number))
    except Moved:
        logger.info("another process keeps it up", extra={"slot": number})


def run_ended(adapters: Adapters, run: JobRun) -> None:
    """Free the slot of a shared run, and start the next one at once if files wait."""
    metrics.add_metric("SharedRunsEnded", "Count", 1)
    logger.info("a shared run ended", extra={"run": run.id, "run_state": run.state})
    if run.state is not RunState.SUCCESS:
        metrics.add_metric("SharedRunsFailed", "Count", 1)
    slots = map(adapters.ledger.slot, range(adapters.settings.shared_runs))
    for slot in [each for each in slots if each.run == run.id]:
        free = adapters.ledger.save_slot(replace(slot, checked_at=""))
        if adapters.work.size():
            _start(adapters, free)


def _fill(adapters: Adapters, slot: Slot) -> None:
    """Start a run unless the slot's one is up. Raise Moved if another process was faster."""
    now = adapters.now()
    if slot.is_trusted(now):
        return
    if slot.run and slot.checked_at and not _has_ended(adapters, slot.run):
        adapters.ledger.save_slot(replace(slot, checked_at=now))
    else:  # of a run that was only named the starter may have died
        _start(adapters, slot)


def _has_ended(adapters: Adapters, run: str) -> bool:
    try:
        return look(adapters, run).has_ended
    except UnknownRun:
        return True


def _start(adapters: Adapters, free: Slot) -> None:
    """Start a run in the slot; none if it could touch no table, and no file waits to be told so.

    Nor is one started while the budget has no room. Raise Moved if another process was faster.
    """
    in_force = (each.contract for each in adapters.lake.contracts(None))
    apart = tuple(sorted(each.table for each in in_force if each.isolation == "own"))
    now = adapters.now()
    wanted = input_of(shared_name(free.number, now, adapters.token()), apart, adapters.settings)
    slot = adapters.ledger.save_slot(free.named(wanted.name, now, wanted.apart))
    if ALL in wanted.apart and not adapters.work.size():
        return
    run = start_within_budget(adapters, wanted)
    if not run:
        return
    metrics.add_metric("SharedRunsStarted", "Count", 1)
    logger.info("shared run started", extra={"run": run, "run_name": slot.name})
    adapters.ledger.save_slot(replace(slot, run=run, checked_at=adapters.now()))


def input_of(name: str, apart: tuple[str, ...], settings: Settings) -> SharedRun:
    """Return the input of a run, apart from more tables if its policy has no room for the given."""
    run = SharedRun(
        name=name,
        work_queue=settings.work_queue,
        verdict_queue=settings.job_run_queue,
        lake_bucket=settings.lake_bucket,
        nessie_uri=settings.nessie_uri,
        token_secret=settings.job_token_secret,
        timeout_minutes=settings.job_timeout_minutes,
        idle_seconds=settings.run_idle_seconds,
        apart=apart,
    )
    return widened(run, settings)
