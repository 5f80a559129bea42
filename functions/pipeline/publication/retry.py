"""Run an ingestion again on a fresh branch, as long as it may have another attempt."""

from collections.abc import Sequence

from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion, State, landing
from functions.pipeline.outcome.finish import end, finish
from functions.pipeline.start.submit import submit
from functions.telemetry import logger, metrics
from lakegate.audit.report import Reason
from lakegate.errors import LakegateError


def may_try_again(adapters: Adapters, ingestion: Ingestion) -> bool:
    """Return whether it may have one more attempt."""
    return ingestion.attempt - ingestion.tries_from < adapters.settings.max_branches


def run_again(adapters: Adapters, ingestion: Ingestion, *, ever: bool = False) -> Ingestion:
    """Start another attempt on a fresh branch, since this branch will never be merged.

    With `ever` it is started however many there were, and is none of those that it may have.

    Raise Moved if another process changed the ingestion meanwhile: its branch may then be evidence.
    So the branch is deleted only after the ledger no longer names it.
    """
    if not ever and not may_try_again(adapters, ingestion):
        return _give_up(adapters, ingestion)
    fresh = ingestion.step(
        "run again",
        adapters.now(),
        state=State.LANDED,
        audited_hash="",
        group=(),
        is_shared=False,
        tries_from=ingestion.tries_from + ever,
    )
    # Without a branch: this one will be gone, and the next one may never be created.
    saved = adapters.ledger.save(fresh.but(attempt=ingestion.attempt + 1, branch=""))
    metrics.add_metric("RunsAgain", "Count", 1)
    if ingestion.branch:
        adapters.catalog.delete_branch(ingestion.branch)
    return submit(adapters, saved)


def run_all_again(adapters: Adapters, members: Sequence[Ingestion]) -> Ingestion:
    """Run the jobs of all members again; return the first as it is then.

    The one that landed first comes last: files behind it wait, and so come in its turn. What fails
    for others than the first is left to their own messages, or to the sweep.
    """
    first, failed = members[0], None
    for each in sorted(adapters.ledger.leave(members), key=landing, reverse=True):
        try:
            again = run_again(adapters, each)
            if each.id != first.id:
                finish(adapters, again)
        except LakegateError as error:
            logger.warning("left to the sweep", extra={"other": each.id, "why": error.message})
            failed = error if each.id == first.id else failed
    if failed:
        raise failed
    return adapters.ledger.get(first.id)


def _give_up(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Record that it errored; it keeps its branch, unless a group shares that one."""
    if ingestion.group:
        ingestion = adapters.ledger.save(ingestion)  # whoever took it further needs its branch
        adapters.catalog.delete_branch(ingestion.branch)
        ingestion = ingestion.but(branch="", audited_hash="", group=())
    tries = ingestion.attempt - ingestion.tries_from
    message = (
        f"none of {tries} attempts could be published; replay it when fewer files are in flight"
    )
    return end(adapters, ingestion, State.ERRORED, Reason("TOO_MANY_ATTEMPTS", message))
