"""The audit report: what was checked, what was expected, what was found.

The job writes it, once, beside the lake; publishing, alerting and the command line read it.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lakegate.errors import Permanent
from lakegate.landing import LandedObject

SCHEMA = "audit-report/1"


class Verdict(StrEnum):
    """What the job says of a file: publish it, do not publish it, or it could not be judged."""

    PASSED = "passed"
    REJECTED = "rejected"
    ERRORED = "errored"


class Status(StrEnum):
    """The outcome of one check; `ERROR` means that it could not be evaluated, and blocks."""

    PASS = "pass"  # noqa: S105 - no password
    WARN = "warn"
    FAIL = "fail"
    ERROR = "error"


@dataclass(frozen=True)
class CheckResult:
    """One check's outcome, worded for people.

    `samples` are rows, as column → value in text, that break the check; a few, or none where the
    contract forbids them. `counted` is the number of rows behind `found`, and `attempt` the earlier
    one that found it, where it was not looked at again; both are None where nobody said.
    """

    id: str
    metric: str
    columns: tuple[str, ...]
    severity: str
    status: Status
    expected: str
    found: str
    message: str = ""
    samples: tuple[Mapping[str, str | None], ...] = ()
    counted: int | None = None
    attempt: int | None = None


@dataclass(frozen=True)
class Reason:
    """Why a file was not published: a stable code for programs, a sentence for people."""

    code: str
    message: str


@dataclass(frozen=True)
class DataFile:
    """A data file that the job wrote: its address, its rows, its size in bytes."""

    path: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class AuditReport:
    """What one attempt found out about one landed object.

    `audited_hash` is the Nessie hash of the branch that holds exactly what was audited, `""` when
    nothing was written. `rows_written` are the rows on the branch, which are all rows of the file;
    `files` hold them, and are empty in reports of older releases, which did not say. Times are
    ISO 8601 in UTC; `cost` maps a step to its seconds.
    """

    ingestion: str
    attempt: int
    verdict: Verdict
    reason: Reason | None
    table: str
    branch: str
    base_hash: str
    audited_hash: str
    source: LandedObject
    format: str
    contract_id: str
    contract_version: str
    contract_sha256: str
    rows_written: int
    checks: tuple[CheckResult, ...]
    started_at: str
    finished_at: str
    cost: Mapping[str, float] = field(default_factory=dict)
    engine: Mapping[str, str] = field(default_factory=dict)
    files: tuple[DataFile, ...] = ()

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """The checks that block publishing."""
        return tuple(c for c in self.checks if c.status in (Status.FAIL, Status.ERROR))

    def to_json(self) -> str:
        """The report as the JSON document that lies beside the lake."""
        document = {"schema": SCHEMA, **dataclasses.asdict(self)}
        return json.dumps(document, indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> "AuditReport":
        """The report that `to_json` wrote.

        Raises Permanent BAD_REPORT when the text is not a report that can be understood: a report
        in doubt is never a pass.
        """
        try:
            return _from_document(json.loads(text))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Permanent("BAD_REPORT", f"the audit report cannot be read: {error!r}") from error


def _from_document(document: dict[str, Any]) -> AuditReport:
    if document.pop("schema") != SCHEMA:
        raise ValueError(f"the schema is not {SCHEMA}")
    reason = document.pop("reason")
    report = AuditReport(
        verdict=Verdict(document.pop("verdict")),
        reason=Reason(**reason) if reason else None,
        source=LandedObject(**document.pop("source")),
        checks=tuple(_check(check) for check in document.pop("checks")),
        files=tuple(DataFile(**file) for file in document.pop("files", ())),
        **document,
    )
    _expect_types(report)
    for file in report.files:
        _expect_types(file)
    return report


def _expect_types(value: AuditReport | DataFile) -> None:
    for field_ in dataclasses.fields(value):
        if field_.type in (str, int) and type(getattr(value, field_.name)) is not field_.type:
            raise TypeError(f"{field_.name} is not of the type {field_.type}")


def _check(document: dict[str, Any]) -> CheckResult:
    return CheckResult(
        status=Status(document.pop("status")),
        columns=tuple(document.pop("columns")),
        samples=tuple(document.pop("samples")),
        **document,
    )
