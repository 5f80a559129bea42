"""Keep the job runs of a day within its budget: ask before each start, count after each end.

Without a budget nothing is read, written or held. A process that dies between two steps leaves an
amount held that no run uses, until the next day: so too few runs are started, never too many.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from functions.adapters.all import Adapters
from functions.adapters.emr import JobRun
from functions.adapters.ledger.notes import Moved
from functions.adapters.spark_submit import most_use
from functions.model.budget import Spending
from functions.telemetry import logger
from lakegate.errors import LakegateError
from lakegate.job.jobspec import JobSpec
from lakegate.job.shared_run import SharedRun


def start_within_budget(adapters: Adapters, told: JobSpec | SharedRun) -> str:
    """Start a job run and return its id, "" if the day's budget has no room.

    The most that the run may cost is held first, so that no crash leaves a run that is not counted.
    Raises as `Jobs.start`.
    """
    if not _held(adapters, told):
        logger.info("not started: the day's budget has no room", extra={"run_name": told.name})
        return ""
    try:
        return adapters.jobs.start(told)
    except LakegateError:
        _release(adapters, told.name)  # a shared run's next try has another name
        raise


def _held(adapters: Adapters, told: JobSpec | SharedRun) -> bool:
    """Hold the most that a run may cost, unless that was done before, or there is no room."""
    budget = adapters.settings.daily_budget_usd
    if not budget:
        return True
    charge = adapters.ledger.charge(told.name)
    if charge.counts:  # by an earlier try, which may have started it
        return True
    most = most_use(told, adapters.settings).cost
    return adapters.ledger.save_charge(charge, charge.holding(_today(adapters), most), budget)


def _release(adapters: Adapters, name: str) -> None:
    """Hold nothing for a run that was not started; if it was after all, its end counts it."""
    if adapters.settings.daily_budget_usd:
        charge = adapters.ledger.charge(name)
        if charge.held:
            adapters.ledger.save_charge(charge, replace(charge, held=0))


def look(adapters: Adapters, run_id: str) -> JobRun:
    """Return a job run as it is now; count it once it has ended. Raises UnknownRun."""
    run = adapters.jobs.get(run_id)
    if run.has_ended and adapters.settings.daily_budget_usd:
        _count(adapters, run)
    return run


def _count(adapters: Adapters, run: JobRun) -> None:
    charge = adapters.ledger.charge(run.name)
    today = _today(adapters)
    if charge.run:
        return
    if run.use is None:  # the bill follows within seconds: the sweep looks again
        adapters.ledger.note_unmeasured(charge.day or today, run.id)
        return
    with suppress(Moved):  # another process counts it
        adapters.ledger.save_charge(charge, charge.counted(today, run.id, run.use.cost))


def unmeasured(adapters: Adapters) -> Iterator[str]:
    """Yield the ids of today's runs that ended and are not counted yet."""
    yield from spending(adapters).unmeasured


def spending(adapters: Adapters) -> Spending:
    """Return what today's job runs cost; nothing without a budget."""
    today = _today(adapters)
    if not adapters.settings.daily_budget_usd:
        return Spending(today)
    return adapters.ledger.spending(today)


def has_room(adapters: Adapters) -> bool:
    """Return whether one more job run may be started today."""
    return spending(adapters).admits(adapters.settings.daily_budget_usd)


def why_wait(adapters: Adapters) -> str:
    """Describe why no job run is started now, "" if one may be."""
    return spending(adapters).why_wait(adapters.settings.daily_budget_usd)


def _today(adapters: Adapters) -> str:
    return adapters.now()[:10]
