"""Handle a published ingestion whose commit main lost because main was set back.

Nothing happens automatically, as it may be intended. To publish the rows again, replay the
ingestion; to accept the loss, discard it. Both start here, with a proof that the rows are gone.
"""

from functions.adapters.all import Adapters
from functions.adapters.ledger.notes import Moved
from functions.adapters.nessie import MAIN
from functions.model import merge_commit
from functions.model.audit_outcome import AuditOutcome
from functions.model.ingestion import Ingestion, State
from functions.operations.decisions.preconditions import overtaken
from functions.pipeline.outcome.finish import end, finish
from functions.pipeline.outcome.reports import readable_report
from lakegate.audit.report import Reason
from lakegate.errors import LakegateError

WITHDRAWN = "WITHDRAWN"


def withdrawn(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Return an ingestion whose commit main lost as errored; return others unchanged.

    Its owner is notified as of every failure. Raises LakegateError ROWS_ON_MAIN where its rows may
    be on main although no commit names it, MOVED_ON where another process was faster.
    """
    if ingestion.state is not State.PUBLISHED:
        return ingestion
    head = adapters.catalog.head(MAIN)
    if _is_named(adapters, ingestion):
        return ingestion
    _require_gone(adapters, ingestion)
    tables = ", ".join(ingestion.tables)
    message = (
        f"main no longer has commit {ingestion.merge_hash}, which published its "
        f"{ingestion.audit.rows:,} rows: main was set back, and the rows are gone from {tables}"
    )
    nothing = without_rows(ingestion, head)
    try:
        ended = end(adapters, nothing, State.ERRORED, Reason(WITHDRAWN, message))
    except Moved as moved:
        raise overtaken(adapters.ledger.get(ingestion.id)) from moved
    return finish(adapters, ended)


def without_rows(ingestion: Ingestion, head: str) -> Ingestion:
    """Return a published ingestion as one that left nothing on main, whose head is `head`."""
    return ingestion.without_approval().but(
        branch="",
        base_hash=head,  # the next branch is compared with main's commits after it
        audited_hash="",
        group=(),
        merge_hash="",
        replaced=(),
        audit=AuditOutcome(duplicate_of=ingestion.audit.duplicate_of),
        alerted=False,
        cleaned=False,
        recorded=0,  # main lost its audit results as well
    )


def _is_named(adapters: Adapters, ingestion: Ingestion) -> bool:
    log = adapters.catalog.log()
    return any(each.id == ingestion.id for commit in log for each in merge_commit.published(commit))


def _require_gone(adapters: Adapters, ingestion: Ingestion) -> None:
    """Raise LakegateError where main may have one of its data files: a replay would double it."""
    report = readable_report(adapters.lake, ingestion.report_key)
    if report is None:
        message = (
            "its audit report is gone, so its data files are unknown and may be on main: look for "
            "its rows there; if they are missing, drop the file again"
        )
        raise LakegateError("ROWS_ON_MAIN", message)
    for single in report.singles:
        own = {file.path for file in single.files}
        paths = sorted(
            own.intersection(adapters.tables().listed(single.table, MAIN)) if own else ()
        )
        if paths:
            message = (
                f"{single.table} lists {paths[0]} on main, although no commit names it: a replay "
                f"of {ingestion.id} would double its rows; remove that file from the table first"
            )
            raise LakegateError("ROWS_ON_MAIN", message)
