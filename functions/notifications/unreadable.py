"""Unparseable cells: what becomes of their rows if the file is published anyway."""

from lakegate.audit.diagnosis import cell_told
from lakegate.audit.report import READABLE, AuditReport

_MOST = 3


def named(report: AuditReport | None, *, null_unreadable: bool = False) -> str:
    """Return how many rows could not be parsed, their first cells, and what will become of them.

    "" if all rows could be parsed.
    """
    if report is None or not (report.rows_unreadable or report.holds_nulls):
        return ""
    many, every = report.rows_unreadable, report.rows_read
    samples = (s for c in report.checks if c.id.endswith(READABLE) for s in c.samples)
    cells = [cell_told(each) or str(each.get("unreadable") or each.get("row")) for each in samples]
    first = f": {'; '.join(cells[:_MOST])}" if cells else ""
    end = "published, with null for each such cell" if null_unreadable else "left out (quarantined)"
    counted = f"{many:,} of {every:,}" if many else "some"
    return f"{counted} rows could not be read{first}. They will be {end}."
