"""Keep the baselines of checks of drift: published runs, and what was accepted as normal."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial, reduce

from functions.adapters.all import Adapters
from functions.adapters.s3 import Overwritten
from functions.model.ingestion import Ingestion
from functions.pipeline.outcome.reports import report_of
from lakegate.audit.drift import Acceptance, Baselines
from lakegate.audit.report import AuditReport
from lakegate.errors import LakegateError, Transient

_TRIES = 5


def add_published(adapters: Adapters, reports: Iterable[AuditReport]) -> None:
    """Add what published runs measured; repeating it changes nothing."""
    by_table: defaultdict[str, list[AuditReport]] = defaultdict(list)
    for single in (single for report in reports for single in report.singles):
        if any(check.baseline for check in single.checks):
            by_table[single.table].append(single)
    for table, runs in by_table.items():
        _change(adapters, table, partial(reduce, Baselines.adding, runs))


def accept(adapters: Adapters, ingestion: Ingestion, by: str, reason: str) -> Acceptance:
    """Accept the drift in an ingestion's last run as normal: its baselines restart there.

    Repeating it changes nothing. Return the first acceptance. Raise LakegateError if nothing
    drifted, there is no report, or a later run was accepted since.
    """
    if not by.strip() or not reason.strip():
        message = "say who accepts it and why: both are written down beside the baselines"
        raise LakegateError("NAME_NEEDED", message)
    report = report_of(adapters, ingestion) if ingestion.report_key else None
    if report is None:
        raise LakegateError("NO_REPORT", f"ingestion {ingestion.id} has no audit report")
    if report.parts:
        message = "what was unusual in a batch cannot be accepted: land the file that is by itself"
        raise LakegateError("IS_BATCH", message)
    at = adapters.now()
    changed = _change(
        adapters,
        report.table,
        lambda known: known.accepting(report, by.strip(), reason.strip(), at),
    )
    return changed.accepted(ingestion.id) or Acceptance(ingestion.id, "", by, reason, at)


def _change(adapters: Adapters, table: str, change: Callable[[Baselines], Baselines]) -> Baselines:
    """Save the changed baselines, unless another process changed them; then change those."""
    for _ in range(_TRIES):
        known, etag = adapters.lake.baselines(table)
        changed = change(known)
        if changed == known:
            return known
        try:
            adapters.lake.put_baselines(changed, etag)
        except Overwritten:
            continue
        return changed
    raise Transient("BASELINES_BUSY", f"the baselines of {table} are being changed all the time")
