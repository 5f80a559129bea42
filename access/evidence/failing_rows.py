"""Find the rows that break an ingestion's checks, and compare them with the audit report."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from access.ingestions.shown_report import Concealment, masked
from access.tables.check_sql import about_rows
from functions.adapters.all import Adapters
from functions.adapters.s3 import Missing
from functions.model.ingestion import Ingestion
from lakegate.audit.diagnosis import cell_told
from lakegate.audit.report import ADDRESS, PLACE, READABLE, AuditReport, CheckResult
from lakegate.contract.checks import Check, Metric
from lakegate.contract.model import Contract
from lakegate.errors import LakegateError

if TYPE_CHECKING:
    from access.tables.reader import Reader
    from access.tables.rows import Evidence

# Takes a report, a check's id and a limit; returns quarantined rows as they stand in the file.
QuarantinedRows = Callable[[AuditReport, str, int], Sequence[str]]
UNWRITTEN = "nothing was written, so there are no rows to show"
_UNMERGED = "the file's rows could not be merged; those that are known are from the audit report"
_AMONG_OTHERS = (
    "on the branch the file's rows are among those of the table; those shown are from the audit"
    " report"
)
_NO_SINGLE_ROW = "this check is not about single rows"
_IN_REPORT = "these rows are from the audit report; the branch was not read"
_QUERY = "in Spark SQL, on the branch"
_ABOUT_WHOLE_TABLE = (
    "this check is about the whole table: compare the branch with the table on main"
)
_AS_LANDED = "as they stand in the file: on the branch, unparseable cells become null"
_IN_QUARANTINE = (
    "as they stand in the file: unparseable rows are not on the branch, but in quarantine"
)
_CELLS = (
    "the first cells that could not be read; their rows are not on the branch, but in quarantine: "
    "lakegate inspect --show-rows shows them"
)
_FORBIDDEN = "hidden by the contract (allowSamples: false); lakegate inspect --show-rows shows them"
_MASKED = "confidential columns are hidden; lakegate inspect --show-rows shows them"


def concealment(adapters: Adapters, judged_by: Contract, key: str) -> Concealment:
    """Return what the contract of the audit hides, and what the contract in force hides now.

    `key` is the contract's key. Raises ContractInvalid if the contract in force cannot be read, as
    what it hides is then unknown.
    """
    try:
        return Concealment.by((judged_by, adapters.lake.contract_at(key, "").contract))
    except Missing:
        return Concealment.by((judged_by,))


@dataclass(frozen=True)
class Question:
    """The request: one check, or "" for all failed ones, and at most `limit` rows of each.

    `reveal` shows confidential values.
    """

    check: str = ""
    limit: int = 20
    reveal: bool = False


@dataclass(frozen=True)
class Finding:
    """A check's result, and the rows that break it.

    `count` is the number of rows on the branch that break it, None for a check that is not about
    single rows. `on_branch` is the branch's value in the form of the report's `found`, "" if
    unknown. `notes` are sentences for display.
    """

    result: CheckResult
    count: int | None = None
    rows: tuple[Mapping[str, Any], ...] = ()
    on_branch: str = ""
    notes: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Return whether branch and report agree."""
        stated = f"{self.result.found} ("  # what a report adds in parentheses is more than a number
        return not self.on_branch or stated.startswith(f"{self.on_branch} (")


@dataclass(frozen=True)
class Inspection:
    """An ingestion's findings; `files` are the data files of its rows."""

    ingestion: Ingestion
    report: AuditReport
    findings: tuple[Finding, ...]
    files: tuple[str, ...] = ()


def evidence_of(
    reader: Callable[[str], "Reader"], report: AuditReport
) -> AbstractContextManager["Evidence"]:
    """Open the rows that a report is about; `reader` reads a reference."""
    rows = reader(f"{report.branch}@{report.audited_hash}")
    return rows.rows(report.table, whole=report.is_mixed)


def inspection(
    adapters: Adapters,
    ingestion: Ingestion,
    question: Question,
    evidence_of: Callable[[AuditReport], AbstractContextManager["Evidence"]],
    quarantined: QuarantinedRows = lambda report, check, limit: (),
) -> Inspection:
    """Return the rows that break an ingestion's checks, as its last audit counted them.

    `evidence_of` opens the rows of a report, `quarantined` reads the rows that the run put in
    quarantine for a check. Raises LakegateError: NO_REPORT if the ingestion was not audited,
    UNKNOWN_CHECK, UNKNOWN_CONTRACT if the contract of its audit is lost, and UNKNOWN_REFERENCE if
    its branch is deleted.
    """
    report = audit_of(adapters, ingestion)
    results = _asked(report, question.check)
    told = report.rows_written and any(result.samples for result in results)
    if not results or not (report.audited_hash or told):
        note = _UNMERGED if report.rows_written else UNWRITTEN
        unread = tuple(Finding(result, notes=(note,)) for result in results)
        return Inspection(ingestion, report, unread)
    singles = zip(report.singles, ingestion.contracts, strict=True)
    findings: list[Finding] = []
    files: list[str] = []
    for number, (single, stored) in enumerate(singles):
        own = _own(results, report, number)
        if not own:
            continue
        contract = contract_of(adapters, stored, single)
        hidden = replace(Concealment.by(()), reveals=True)
        if not question.reveal:
            hidden = concealment(adapters, contract, stored[0])
        audited = contract.of_table if ingestion.change else contract
        checks = {check.id: check for check in audited.checks}
        note, places = _not_apart(report, single, ingestion), _places(single)
        with nullcontext() if note else evidence_of(single) as evidence:
            files.extend(evidence.files if evidence is not None else ())
            for result, id_ in own:
                if id_ not in checks:
                    finding = _finding_in_file(result, single, hidden, question.limit, quarantined)
                elif evidence is None:
                    finding = _unread(result, question.limit, hidden, note)
                else:
                    finding = _finding_on_branch(
                        result, checks[id_], contract, question.limit, hidden, evidence, places
                    )
                findings.append(finding)
    return Inspection(ingestion, report, tuple(findings), tuple(files))


def _own(
    results: Sequence[CheckResult], report: AuditReport, number: int
) -> list[tuple[CheckResult, str]]:
    """Return the results about one of its files, each with the check's id in the contract."""
    if not report.parts:
        return [(result, result.id) for result in results]
    before = sum(len(part.checks) for part in report.parts[:number])
    named = zip(report.checks[before:], report.parts[number].checks, strict=False)
    return [(result, check.id) for result, check in named if result in results]


def contract_of(adapters: Adapters, stored: tuple[str, str], report: AuditReport) -> Contract:
    """Return the contract of an audit, `stored` at a key in a version.

    Raises LakegateError UNKNOWN_CONTRACT if the ledger has lost which it was.
    """
    if not stored[0]:
        message = "the contract of this audit is unknown, because the ledger was rebuilt"
        remedy = f"Audit it with the contract in force: `lakegate replay {report.ingestion}`"
        raise LakegateError("UNKNOWN_CONTRACT", f"{message}\n{remedy}")
    return adapters.lake.contract_at(*stored).contract


def audit_of(adapters: Adapters, ingestion: Ingestion) -> AuditReport:
    """Return the report of an ingestion's last audit. Raises LakegateError NO_REPORT."""
    try:
        if ingestion.report_key:
            return adapters.lake.report(ingestion.report_key)
    except Missing:
        pass
    message = f"{ingestion.id} is {ingestion.state} and has no audit report"
    raise LakegateError("NO_REPORT", f"{message}\nDetails: `lakegate show {ingestion.id}`")


def _asked(report: AuditReport, check: str) -> tuple[CheckResult, ...]:
    checks = tuple(r for r in report.checks if r.id == check) if check else report.failed
    if check and not checks:
        known = ", ".join(result.id for result in report.checks)
        raise LakegateError("UNKNOWN_CHECK", f"there is no check {check}\nChecks: {known}")
    return checks


def _finding_in_file(
    result: CheckResult,
    report: AuditReport,
    hidden: Concealment,
    limit: int,
    quarantined: QuarantinedRows,
) -> Finding:
    """Return the finding of a check that does not depend on the contract."""
    if result.samples and all(map(cell_told, result.samples)) and not hidden.reveals:
        note = _AS_LANDED if report.holds_nulls else _CELLS
        cells = _samples(result, limit, hidden)
        return Finding(result, count=result.counted, rows=cells, notes=(note,))
    if result.counted and not report.holds_nulls:
        may_show = not (hidden.every or hidden.columns)
        more = quarantined(report, READABLE, limit) if may_show else ()
        rows = tuple({"row": row} for row in more) or _samples(result, limit, hidden)
        notes = (
            (_IN_QUARANTINE,)
            if may_show
            else (_IN_QUARANTINE, _FORBIDDEN if hidden.every else _MASKED)
        )
        return Finding(result, count=result.counted, rows=rows, notes=notes)
    note = _AS_LANDED if result.samples else _NO_SINGLE_ROW
    return Finding(result, rows=_samples(result, limit, hidden), notes=(note,))


def _places(report: AuditReport) -> dict[tuple[str, int], str]:
    """Return the places in the landed file that a report knows, by the addresses of rows."""
    samples = (sample for check in report.checks for sample in check.samples)
    return {
        _address(each): str(each[PLACE]) for each in samples if {PLACE, *ADDRESS} <= each.keys()
    }


def _address(row: Mapping[str, Any]) -> tuple[str, int]:
    file, position = (row.get(name) for name in ADDRESS)
    return str(file), int(position or 0)


def _with_place(row: Mapping[str, Any], places: Mapping[tuple[str, int], str]) -> Mapping[str, Any]:
    place = places.get(_address(row), "")
    return {PLACE: place, **row} if place else row


def _samples(result: CheckResult, limit: int, hidden: Concealment) -> tuple[Mapping[str, Any], ...]:
    """Return a report's sample rows without what the contract in force hides by now."""
    return tuple(masked(sample, hidden) for sample in result.samples[:limit])


def _not_apart(report: AuditReport, single: AuditReport, ingestion: Ingestion) -> str:
    """Return why the branch does not show the rows of one file; "" if it does."""
    if not report.audited_hash:
        return _UNMERGED
    return "" if ingestion.change or not single.is_mixed else _AMONG_OTHERS


def _unread(result: CheckResult, limit: int, hidden: Concealment, note: str) -> Finding:
    """Return the finding of a check whose rows are in the report alone."""
    return Finding(result, rows=_samples(result, limit, hidden), notes=(note,))


def _finding_on_branch(
    result: CheckResult,
    check: Check,
    contract: Contract,
    limit: int,
    hidden: Concealment,
    evidence: "Evidence",
    places: Mapping[tuple[str, int], str],
) -> Finding:
    if check.checks_whole_table:
        rows = _samples(result, limit, hidden)
        return Finding(result, rows=rows, notes=(_ABOUT_WHOLE_TABLE,))
    if check.metric is Metric.ROWS:
        there = check.expect.found(evidence.count, evidence.count)
        return Finding(result, on_branch=there, notes=(_NO_SINGLE_ROW,))
    if not about_rows(check, contract):
        shown = _samples(result, limit, hidden)
        query = f"{_QUERY}: {result.query}" if result.query else ""
        notes = tuple(filter(None, (_IN_REPORT if shown else "", query)))
        return Finding(result, rows=shown, notes=notes)
    most = 0 if hidden.every else limit
    broken = evidence.broken(check, contract, most, hidden.hides, places)
    masked = (_MASKED,) if hidden.columns and broken.rows else ()
    rows = _samples(result, limit, hidden)
    if any(_address(row) in places for row in broken.rows) or not rows or hidden.reveals:
        rows = tuple(_with_place(row, places) for row in broken.rows)
    return Finding(
        result,
        count=broken.count,
        rows=rows,
        on_branch=check.expect.found(broken.count, evidence.count),
        notes=(_FORBIDDEN,) if hidden.every else masked,
    )
