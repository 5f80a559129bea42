"""An ingestion as a value for programs."""

from dataclasses import dataclass, field

from functions.model import ingestion as model
from functions.model.shown_state import ShownState
from lakegate.audit.diagnosis import BadCell, cell_of
from lakegate.audit.failing_rows import BadRow, bad_rows
from lakegate.audit.report import AuditReport


@dataclass(frozen=True)
class Ingestion:
    """An ingestion when it was read: what one landed file, batch or change caused.

    `state` is as `lakegate runs` shows it. `code` and `reason` say why it was not published.
    `commit` is main's commit with its rows. `report` is its last attempt's audit report, None in
    lists and where there is none that can be read. `left` names the steps of a decision that the
    sweep will repeat. Times are ISO 8601 in UTC, and "" before they come.
    """

    id: str
    state: str
    bucket: str
    key: str
    version: str
    tables: tuple[str, ...] = ()
    rows: int = 0
    landed_at: str = ""
    ended_at: str = ""
    branch: str = ""
    commit: str = ""
    code: str = ""
    reason: str = ""
    owner: str = ""
    attempt: int = 1
    approved_by: str = ""
    report: AuditReport | None = field(default=None, repr=False)
    left: str = ""

    @property
    def cells(self) -> tuple[BadCell, ...]:
        """Return the first cells that could not be read, as the report names them."""
        checks = self.report.checks if self.report else ()
        return tuple(filter(None, (cell_of(each) for check in checks for each in check.samples)))

    @property
    def bad_rows(self) -> tuple[BadRow, ...]:
        """Return the first rows that break a rule, as the report names them; cells are apart."""
        checks = self.report.checks if self.report else ()
        return tuple(row for check in checks for row in bad_rows(check))

    @classmethod
    def of(
        cls, ingestion: model.Ingestion, report: AuditReport | None = None, left: str = ""
    ) -> "Ingestion":
        """Return the ledger's entry for people."""
        return cls(
            id=ingestion.id,
            state=ShownState.of(ingestion).value,
            bucket=ingestion.landed.bucket,
            key=ingestion.landed.key,
            version=ingestion.landed.version,
            tables=ingestion.tables,
            rows=ingestion.audit.rows,
            landed_at=ingestion.landed.landed_at,
            ended_at=ingestion.ended_at,
            branch=ingestion.branch,
            commit=ingestion.merge_hash,
            code=ingestion.reason.code if ingestion.reason else "",
            reason=ingestion.reason.message if ingestion.reason else "",
            owner=ingestion.terms.owner,
            attempt=ingestion.attempt,
            approved_by=ingestion.decisions.approved_by,
            report=report,
            left=left,
        )
