"""Audit checks of the whole table again, where main refuses a branch since its table moved on.

The files are registered on a fresh branch off main, by metadata alone; a job run then scans
what main gained since, and only that. Until it has passed, the ingestion is not audited, so it
cannot be merged. docs/adr/0012-whole-table-checks.md has the whole argument.
"""

from functools import partial

from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion, State
from functions.pipeline.publication.fresh_branch import FreshBranch, on_fresh_branch
from functions.pipeline.publication.retry import may_try_again, run_again
from functions.pipeline.start.submit import submit
from functions.telemetry import metrics
from lakegate.job.landing import fresh_branch, report_key


def audit_again(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Start a job run that audits a refused ingestion on a fresh branch; return it as it is then.

    Where main's table cannot take its files, the whole job runs again.
    """
    if not may_try_again(adapters, ingestion):
        return run_again(adapters, ingestion)
    fresh = fresh_branch(ingestion.table, ingestion.id, adapters.token())
    now = on_fresh_branch(adapters, fresh, [ingestion], partial(_register, adapters, ingestion))
    return submit(adapters, now) if now.branch == fresh else now


def _register(adapters: Adapters, ingestion: Ingestion, fresh: FreshBranch) -> tuple[str, ...]:
    """Register its files on the fresh branch, and save that they are to be audited there.

    Raise CannotRebase where the table cannot take them, Moved where another process was faster.
    """
    failed = adapters.tables().append_again(ingestion.table, [ingestion.intent], fresh.name)
    if ingestion.intent in failed:
        raise failed[ingestion.intent]
    attempt = ingestion.attempt + 1
    registered = ingestion.step(
        "entered",
        adapters.now(),
        state=State.BRANCHED,
        attempt=attempt,
        branch=fresh.name,
        base_hash=fresh.base,
        audited_hash=adapters.catalog.head(fresh.name),
        reaudit_base=ingestion.base_hash,
        report_key=report_key(ingestion.table, ingestion.id, attempt),
    )
    adapters.ledger.save(registered)
    metrics.add_metric("AuditsAgain", "Count", 1)
    return ()  # `submit` deletes the branches that it replaces
