"""The outcome of an ingestion's audit, as the ledger keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakegate.audit.report import Status


@dataclass(frozen=True)
class AuditOutcome:
    """The outcome of an audit; before it, that of nothing.

    `rows` come to main with its intent. Of a change, or of a file that replaces rows of others,
    `replaced_rows` are the rows that it removes; of these it puts another row with the same key in
    the place of `updated_rows`. `checks` are the first checks that did not pass, without sample
    rows: blocking ones, then warnings. `check_counts` counts the report's checks by status.
    `duplicate_of` is the ingestion that brought the same bytes before.
    """

    rows: int = 0
    replaced_rows: int = 0
    updated_rows: int = 0
    check_counts: Mapping[str, int] = field(default_factory=dict)
    checks: tuple[Mapping[str, Any], ...] = ()
    duplicate_of: str = ""

    @property
    def warnings(self) -> tuple[Mapping[str, Any], ...]:
        """Return the checks that warn; those of severity info are only in the report."""
        warns = (check for check in self.checks if check["status"] == Status.WARN)
        return tuple(check for check in warns if check["severity"] != "info")
