"""Checks of the whole table, looked at again where main refuses a branch: its table moved on.

The files are entered into a fresh branch off main, by metadata alone; a job run then looks at what
main gained since, and only at that. Until it has passed, the ingestion is not audited, so nobody
merges it. docs/adr/0012-whole-table-checks.md has the whole argument.
"""

from functions.adapters.all import Adapters
from functions.adapters.nessie import CannotRebase
from functions.model.ingestion import Ingestion, State
from functions.model.merge_commit import AlreadyPublished, require_unpublished
from functions.pipeline.finish import end_published
from functions.pipeline.intake import current_requirements, may_try_again, run_again, submit
from functions.telemetry import logger, metrics
from lakegate.errors import LakegateError
from lakegate.landing import fresh_branch, report_key


def audit_again(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Have a job run audit, on a fresh branch, the ingestion whose intent main has refused.

    Where main's table cannot take its files, all of the job runs again. Returns it as it then is.
    """
    if not may_try_again(adapters, ingestion):
        return run_again(adapters, ingestion)
    fresh = fresh_branch(ingestion.table, ingestion.id, adapters.token())
    base = adapters.catalog.create_branch(fresh)
    try:
        entered = _enter(adapters, ingestion, fresh, base)
    except CannotRebase as why:
        logger.info("the job must run again", extra={"why": why.message})
        adapters.catalog.delete_branch(fresh)
        return run_again(adapters, ingestion)
    except AlreadyPublished as found:
        adapters.catalog.delete_branch(fresh)
        return end_published(adapters, [ingestion], found.commits[ingestion.id])
    except Exception as error:
        # A save that timed out may have been done: then the fresh branch is its own.
        entered = adapters.ledger.get(ingestion.id)
        if entered.branch != fresh:
            adapters.catalog.delete_branch(fresh)
        if entered.revision == ingestion.revision or not isinstance(error, LakegateError):
            raise
        if entered.branch != fresh:
            return entered
    metrics.add_metric("AuditsAgain", "Count", 1)
    return submit(adapters, entered)


def _enter(adapters: Adapters, ingestion: Ingestion, fresh: str, base: str) -> Ingestion:
    """Enter its files on the fresh branch, cut at `base`, and save that it is to be audited there.

    Raises CannotRebase when they cannot be entered, AlreadyPublished when main has them, Moved when
    another process was quicker.
    """
    require_unpublished(adapters.catalog.log(), [ingestion])
    if ingestion.requirements_digest != current_requirements(adapters, ingestion):
        raise CannotRebase("CONTRACT_CHANGED", "the contract asks for other things now")
    failed = adapters.tables().append_again(ingestion.table, [ingestion.intent], fresh)
    if ingestion.intent in failed:
        raise failed[ingestion.intent]
    attempt = ingestion.attempt + 1
    entered = ingestion.step(
        "entered",
        adapters.now(),
        state=State.BRANCHED,
        attempt=attempt,
        branch=fresh,
        base_hash=base,
        audited_hash=adapters.catalog.head(fresh),
        reaudit_base=ingestion.base_hash,
        report_key=report_key(ingestion.table, ingestion.id, attempt),
    )
    return adapters.ledger.save(entered)
