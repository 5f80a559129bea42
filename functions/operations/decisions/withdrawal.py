"""Handle a published ingestion whose commit main lost because main was set back.

Nothing happens automatically, as it may be intended. To publish the rows again, replay the
ingestion; to accept the loss, discard it. Both start here, with a proof that the rows are gone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

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
    for _, why in unclear(adapters, [ingestion]):
        raise LakegateError("ROWS_ON_MAIN", f"a replay may double its rows: {why}")
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


def unclear(adapters: Adapters, lost: Iterable[Ingestion]) -> Iterator[tuple[str, str]]:
    """Yield the ids of those whose rows main may have all the same, with why and what to do."""
    owners: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for each in lost:
        report = readable_report(adapters.lake, each.report_key)
        if report is None:
            why = "its audit report is gone, so its data files are unknown and may be on main"
            yield each.id, f"{why}: look for its rows; if they are missing, drop the file again"
        for single in report.singles if report else ():
            owners[single.table].update((file.path, each.id) for file in single.files)
    for table, own in ((table, own) for table, own in owners.items() if own):
        for path in adapters.tables().listed(table, MAIN):
            if path in own:
                why = f"{table} lists {path} on main, although no commit names it"
                yield own[path], f"{why}: remove that file from the table first"
