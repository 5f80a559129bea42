"""The audit report: checks, expectations and findings.

The job writes it, once, beside the lake. Publisher, alerts and command line read it.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lakegate.audit.diagnosis import Rename, WrongColumns
from lakegate.errors import Permanent
from lakegate.job.change import Effect
from lakegate.job.landing import LandedObject, report_key
from lakegate.text import load_json

SCHEMA = "audit-report/1"
READABLE = "file.rows_readable"  # the check that every cell of a file can be read
# Checks that fail because other checks kept rows out.
HAS_ROWS, QUARANTINE_LIMIT = "file.has_rows", "file.quarantine"
_LARGEST = 1 << 63  # what the ledger's and the tables' numbers hold
# What a sample row says besides values: Iceberg's data file, and the row's number in it from 0; its
# place in the landed file, as `diagnosis.place` says it; how often the file has its key.
ADDRESS = ("_file", "_pos")
PLACE, TIMES = "_place", "_times"
MOST_OF_KEY = 3  # sample rows of a key that is there several times


class Verdict(StrEnum):
    """The job's verdict on a file: publish it, reject it, or it could not be audited."""

    PASSED = "passed"
    REJECTED = "rejected"
    ERRORED = "errored"


class Status(StrEnum):
    """The outcome of one check; `ERROR` means that it could not be evaluated, and blocks.

    `SKIPPED` means that it did not run, for the reason in its message.
    """

    PASS = "pass"  # noqa: S105 - no password
    WARN = "warn"
    FAIL = "fail"
    ERROR = "error"
    SKIPPED = "skipped"


class Tier(StrEnum):
    """The tier that answered a check, the cheapest first; each runs only checks still open.

    The file's own columns before anything is written; a pass over the decoded file without Spark; a
    scan of the new data files; jobs over keys, which may read the table; the history of earlier
    runs.
    """

    FILE = "file"
    ARROW = "arrow"
    SCAN = "scan"
    KEYS = "keys"
    HISTORY = "history"


@dataclass(frozen=True)
class Baseline:
    """The measure of a drift check, and the published runs that it was compared with.

    `rule` is the digest of the measure's rule; `mad` the median distance from the median. The last
    two are None without earlier runs.
    """

    rule: str
    measured: float
    runs: int
    median: float | None = None
    mad: float | None = None


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check, in words.

    `samples` are a few rows that break the check, as column → value in text, with `PLACE`, `TIMES`
    and `ADDRESS` as far as they are known; the places alone if the contract forbids samples.
    `counted` is the number of rows behind `found`; `attempt` is the earlier
    attempt that counted them, if they were not counted again; None if unknown. `value` is the
    measured number as text, `tier` the tier that answered. `query` is Spark SQL that finds the
    rows. `table` is the table of the check, "" in a report about one table. `is_told` if the
    report's reason says all of it, so that it need not be shown beside the reason.
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
    value: str = ""
    tier: str = ""
    query: str = ""
    baseline: Baseline | None = None
    table: str = ""
    is_told: bool = False


@dataclass(frozen=True)
class Reason:
    """The reason for not publishing: a stable code for programs, a sentence for people."""

    code: str
    message: str

    @property
    def with_code(self) -> str:
        """Return the sentence, and the code in parentheses."""
        return f"{self.message} ({self.code})"


@dataclass(frozen=True)
class DataFile:
    """A data file that the job wrote: its address, its rows, its size in bytes."""

    path: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class Step:
    """The cost of one step of a run: seconds, Spark jobs, and the bytes they read and shuffled."""

    name: str
    seconds: float
    jobs: int = 0
    rows: int = 0
    bytes: int = 0
    shuffled: int = 0


@dataclass(frozen=True)
class AuditReport:
    """The result of one attempt for one landed object.

    `audited_hash` is the Nessie hash of the branch that holds exactly the audited rows, "" if
    nothing was written. `rows_written` are the rows on the branch: all `rows_read` of the file
    except the `rows_rejected`, which were quarantined. `rows_unreadable` have a cell that could not
    be parsed; `rows_nulled` are those of them that are in the table, on request, with null for each
    such cell. `files` hold the rows. `transform` is the SQL that made `rows_read` from the file's
    `source_rows`. `schema_changes` describe changes of the
    table by the file or the contract, and differences of their columns. `records` are the run's
    data files for the audit tables. Times are ISO 8601 in UTC.

    For a change of the table, `source` is the change's text, `rows_written` are the rows that it
    adds, and `effect` is its effect on the table; None for a file that only adds rows. For a file
    that replaces rows, `rows_written` are those that it inserts or updates. After an upsert these
    are among others in data files that `files` do not name.

    For a batch, `source` is the manifest and `parts` are the reports of its files, each with its
    own table, contract, data files and records, and the `audited_hash` and `base_hash` after and
    before its append. `checks` are those of the parts, as `<file>: <id>`, and row counts are sums.

    `group` are the ids of all ingestions whose rows are on the branch at `audited_hash`, if there
    are several. Each has a report of its own, which counts its own rows alone.

    `wrong_columns` is how the columns of a refused file differ from the contract's.
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
    steps: tuple[Step, ...] = ()
    engine: Mapping[str, str] = field(default_factory=dict)
    files: tuple[DataFile, ...] = ()
    rows_read: int = 0
    rows_rejected: int = 0
    rows_unreadable: int = 0
    rows_nulled: int = 0
    transform: str = ""
    schema_changes: tuple[str, ...] = ()
    source_rows: int = 0
    records: tuple[DataFile, ...] = ()
    effect: Effect | None = None
    parts: tuple["AuditReport", ...] = ()
    group: tuple[str, ...] = ()
    wrong_columns: WrongColumns | None = None

    @property
    def key(self) -> str:
        """Return its key in the lake bucket."""
        return report_key(self.table, self.ingestion, self.attempt)

    @property
    def singles(self) -> tuple["AuditReport", ...]:
        """Return the reports of single files: the parts of a batch, else the report itself."""
        return self.parts or (self,)

    @property
    def holds_nulls(self) -> bool:
        """Return if unparseable cells are null on the branch."""
        return self.rows_nulled > 0

    @property
    def is_mixed(self) -> bool:
        """Return if the branch's table does not tell its rows from others: they have no files."""
        return self.effect is not None and not self.files

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """Return the checks that block publishing."""
        return tuple(c for c in self.checks if c.status in (Status.FAIL, Status.ERROR))

    @property
    def warned(self) -> tuple[CheckResult, ...]:
        """Return the checks that do not hold, and let the file pass."""
        return tuple(c for c in self.checks if c.status is Status.WARN)

    @property
    def untold(self) -> tuple[CheckResult, ...]:
        """Return the failed ones that the reason does not tell."""
        return tuple(check for check in self.failed if not check.is_told)

    def to_json(self, indent: int | None = 2) -> str:
        """Return the report as the JSON document that lies beside the lake."""
        once = dataclasses.replace(self, checks=()) if self.parts else self
        document = {"schema": SCHEMA, **vars(once)}
        return json.dumps(document, indent=indent, ensure_ascii=False, default=vars)

    @classmethod
    def from_json(cls, text: str | bytes, key: str = "") -> "AuditReport":
        """Return the report that `to_json` wrote; `key` is its place.

        Raises Permanent BAD_REPORT for a text that is no valid report: a doubtful report is never a
        pass.
        """
        named = f"the audit report {key}".rstrip()
        try:
            document = load_json(text)
        except ValueError as error:
            raise Permanent("BAD_REPORT", f"{named} is not JSON: {error}") from error
        try:
            return _from_document(document)
        except KeyError as error:
            raise Permanent("BAD_REPORT", f"{named} lacks {error}") from error
        except (TypeError, ValueError, AttributeError, RecursionError) as error:
            raise Permanent(
                "BAD_REPORT", f"{named} is not an audit report of Lakegate: {error}"
            ) from error


def to_lines(reports: Iterable[AuditReport]) -> bytes:
    """Return several reports as one object, a JSON document in each line."""
    return "\n".join(report.to_json(indent=None) for report in reports).encode()


def from_lines(text: bytes, key: str) -> list[AuditReport]:
    """Return the reports that `to_lines` wrote; `key` is their place. Raises as `from_json`."""
    return [AuditReport.from_json(line, key) for line in text.splitlines()]


def checks_of(parts: Sequence[AuditReport], manifest: str) -> tuple[CheckResult, ...]:
    """Return the checks of a batch's files, each with its table and a name of its own.

    `manifest` is the key of the batch's manifest.
    """
    folder = manifest.rpartition("/")[0] + "/"
    return tuple(
        dataclasses.replace(
            check,
            id=f"{part.source.key.removeprefix(folder)}: {check.id}",
            table=part.table,
            is_told=False,  # the reason of a batch is about one of its files
        )
        for part in parts
        for check in part.checks
    )


_Told = AuditReport | LandedObject | Reason | Effect | DataFile | Step
_Found = CheckResult | Baseline | WrongColumns | Rename


def _from_document(document: dict[str, Any]) -> AuditReport:
    if document.pop("schema") != SCHEMA:
        raise ValueError(f"the schema is not {SCHEMA}")
    return _report(document)


def _report(document: dict[str, Any]) -> AuditReport:
    parts = tuple(_report(part) for part in document.pop("parts", ()))
    reason, effect = document.pop("reason"), document.pop("effect", None)
    checks = tuple(_check(check) for check in document.pop("checks"))
    source = LandedObject(**document.pop("source"))
    report = AuditReport(
        verdict=Verdict(document.pop("verdict")),
        reason=Reason(**reason) if reason else None,
        effect=Effect(**effect) if effect else None,
        source=source,
        checks=checks_of(parts, source.key) if parts else checks,
        parts=parts,
        group=tuple(map(str, document.pop("group", ()))),
        wrong_columns=_wrong_columns(document.pop("wrong_columns", None)),
        files=tuple(DataFile(**file) for file in document.pop("files", ())),
        steps=tuple(Step(**step) for step in document.pop("steps", ())),
        schema_changes=tuple(document.pop("schema_changes", ())),
        records=tuple(DataFile(**file) for file in document.pop("records", ())),
        **document,
    )
    told: list[_Told | _Found | None] = [report, report.source, report.reason, report.effect]
    wrong = report.wrong_columns
    told += [wrong, *(wrong.renames if wrong else ()), *(check.baseline for check in checks)]
    for each in (*told, *report.files, *report.records, *report.steps, *checks):
        if each is not None:
            _expect_types(each)
    if report.reason and not "" < report.reason.code < "~":  # by which the ledger's index marks
        raise ValueError(f"{report.reason.code!r} is no code of a reason")
    return report


def _wrong_columns(document: dict[str, Any] | None) -> WrongColumns | None:
    if document is None:
        return None
    lists = {name: tuple(each) for name, each in document.items() if isinstance(each, list)}
    renames = tuple(Rename(**each) for each in lists.pop("renames", ()))
    return WrongColumns(**{**document, **lists, "renames": renames})


def _expect_types(value: _Told | _Found) -> None:
    for field_ in dataclasses.fields(value):
        content = getattr(value, field_.name)
        if not _fits(content, field_.type):
            raise TypeError(f"{field_.name} is not of the type {field_.type}")
        if field_.type is int and not 0 <= content < _LARGEST:
            raise ValueError(f"{field_.name} cannot be {content}")


_NOTHING = type(None)
_ALLOWED: Mapping[Any, tuple[type, ...]] = {
    **{type_: (type_,) for type_ in (str, int, bool)},
    float: (int, float),
    int | None: (int, _NOTHING),
    float | None: (int, float, _NOTHING),
}
_ITEMS: Mapping[Any, type] = {tuple[str, ...]: str, tuple[int, ...]: int}


def _fits(given: Any, type_: Any) -> bool:
    """Return whether a value is of a type, as far as text, numbers and lists of them go."""
    if allowed := _ALLOWED.get(type_):
        return type(given) in allowed
    item = _ITEMS.get(type_)
    return item is None or all(type(each) is item for each in given)


def _check(document: dict[str, Any]) -> CheckResult:
    baseline, samples = document.pop("baseline", None), tuple(document.pop("samples"))
    if not all(isinstance(row, dict) and int(row.get(TIMES, 1)) > 0 for row in samples):
        raise TypeError("samples are not rows")
    return CheckResult(
        status=Status(document.pop("status")),
        columns=tuple(document.pop("columns")),
        samples=samples,
        baseline=Baseline(**baseline) if baseline else None,
        **document,
    )
