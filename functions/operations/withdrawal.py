"""What was published, and is not on main any more: somebody put main back behind it.

Nothing is done about that by itself, for it may have been meant. Who wants the rows back replays
the ingestion, who does not discards it; either begins here, with a proof that they are gone.
"""

from functions.adapters.all import Adapters
from functions.adapters.nessie import MAIN
from functions.model import merge_commit
from functions.model.ingestion import Ingestion, State
from functions.pipeline.finish import end, report_of
from lakegate.errors import LakegateError, Permanent
from lakegate.report import Reason

WITHDRAWN = "WITHDRAWN"


def withdrawn(adapters: Adapters, ingestion: Ingestion) -> Ingestion:
    """Return an ingestion whose commit main lost as one that failed, and any other as it is.

    People are told, as of every failure. Raises LakegateError ROWS_ON_MAIN where its rows are, or
    may be, on main although no commit names it, Transient where another process was faster.
    """
    if ingestion.state is not State.PUBLISHED:
        return ingestion
    head = adapters.catalog.head(MAIN)
    if _is_named(adapters, ingestion):
        return ingestion
    _require_gone(adapters, ingestion)
    tables = ", ".join(ingestion.tables)
    message = (
        f"commit {ingestion.merge_hash}, which published its {ingestion.rows:,} rows, is not on "
        f"main any more: main was put back, and the rows are gone from {tables}"
    )
    nothing = ingestion.but(
        branch="",
        base_hash=head,  # what main takes after that is looked at when its branch is cut
        audited_hash="",
        group=(),
        merge_hash="",
        replaced=(),
        replaced_rows=0,
        rows=0,
        check_counts={},
        checks=(),
        approval=None,
        alerted=False,
        cleaned=False,
        recorded=0,  # main lost what its runs left as well
    )
    return end(adapters, nothing, State.ERRORED, Reason(WITHDRAWN, message))


def _is_named(adapters: Adapters, ingestion: Ingestion) -> bool:
    log = adapters.catalog.log()
    return any(each.id == ingestion.id for commit in log for each in merge_commit.published(commit))


def _require_gone(adapters: Adapters, ingestion: Ingestion) -> None:
    """Raise LakegateError where a data file of its may be on main: a replay would double it."""
    try:
        report = report_of(adapters, ingestion)
    except Permanent:
        report = None
    if report is None:
        message = "its audit report is gone, so nobody can tell whether main has its data files"
        raise LakegateError("ROWS_ON_MAIN", f"{message}: look for its rows, then drop it again")
    for single in report.singles:
        own = {file.path for file in single.files}
        found = sorted(
            own.intersection(adapters.tables().listed(single.table, MAIN)) if own else ()
        )
        if found:
            message = f"{single.table} lists {found[0]} on main, although no commit names it"
            todo = f"to replay {ingestion.id} would double its rows: take that file out first"
            raise LakegateError("ROWS_ON_MAIN", f"{message}; {todo}")
