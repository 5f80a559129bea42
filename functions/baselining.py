"""Keeps the baselines for checks of drift: published runs, and what people accept as normal."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from functions.ending import report_of
from functions.ingestion import Ingestion
from functions.storage import Overwritten
from functions.world import World
from lakegate.baselines import Acceptance, Baselines
from lakegate.errors import LakegateError, Transient
from lakegate.report import AuditReport

_TRIES = 5


def add_published(world: World, reports: Iterable[AuditReport]) -> None:
    """Add what published runs measured; one that is there already changes nothing."""
    by_table: defaultdict[str, list[AuditReport]] = defaultdict(list)
    for single in (single for report in reports for single in report.singles):
        if any(check.baseline for check in single.checks):
            by_table[single.table].append(single)
    for table, found in by_table.items():
        _change(world, table, lambda known, found=found: _adding(known, found))  # type: ignore[misc]


def accept(world: World, ingestion: Ingestion, by: str, reason: str) -> Acceptance:
    """Make what was unusual in an ingestion's last run the new normal: its baselines restart there.

    Done again it changes nothing. Returns who accepted it first. Raises LakegateError where nothing
    was unusual, there is no report, or a later run was accepted since.
    """
    if not by.strip() or not reason.strip():
        message = "say who accepts it and why: both are written down beside the baselines"
        raise LakegateError("NAME_NEEDED", message)
    report = report_of(world, ingestion) if ingestion.report_key else None
    if report is None:
        raise LakegateError("NO_REPORT", f"ingestion {ingestion.id} has no audit report")
    if report.parts:
        message = "what was unusual in a batch cannot be accepted: land the file that is by itself"
        raise LakegateError("IS_BATCH", message)
    at = world.now()
    changed = _change(
        world, report.table, lambda known: known.accepting(report, by.strip(), reason.strip(), at)
    )
    return changed.accepted(ingestion.id) or Acceptance(ingestion.id, "", by, reason, at)


def _adding(known: Baselines, reports: Iterable[AuditReport]) -> Baselines:
    for report in reports:
        known = known.adding(report)
    return known


def _change(world: World, table: str, change: Callable[[Baselines], Baselines]) -> Baselines:
    """Put the changed baselines in the place of those that they were made from."""
    for _ in range(_TRIES):
        known, etag = world.lake.baselines(table)
        changed = change(known)
        if changed == known:
            return known
        try:
            world.lake.put_baselines(changed, etag)
        except Overwritten:
            continue
        return changed
    raise Transient("BASELINES_BUSY", f"the baselines of {table} are being changed all the time")
