"""What is wrong with an ingestion's rows, check by check, and whether the report says the same."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from access.check_sql import about_rows
from access.masking import Concealment, concealment
from functions.adapters.all import Adapters
from functions.adapters.s3 import Missing
from functions.model.ingestion import Ingestion
from lakegate.contract.checks import Check, Metric
from lakegate.contract.model import Contract
from lakegate.errors import LakegateError
from lakegate.report import READABLE, AuditReport, CheckResult

if TYPE_CHECKING:
    from access.rows import Evidence

# Of a report, a check's id, and how many at most: rows as they stand in the file.
KeptOut = Callable[[AuditReport, str, int], Sequence[str]]
_UNWRITTEN = "nothing was written, so there are no rows to show"
_NO_SINGLE_ROW = "there is no single row on the branch to be shown for this check"
_IN_REPORT = "the rows are those of the audit report: nothing was looked up on the branch"
_QUERY = "in Spark SQL, at the branch"
_BEYOND = "the rows on the branch alone do not show it: compare them with the table on main"
_AS_LANDED = "as they stand in the file: on the branch, what could not be read is null"
_LEFT_OUT = "as they stand in the file: such rows are not on the branch, but in quarantine"
_FORBIDDEN = "the contract has allowSamples: false; lakegate inspect --show-rows shows them"
_MASKED = "lakegate inspect --show-rows shows also the columns that the contract calls confidential"


@dataclass(frozen=True)
class Question:
    """What a person asks: one check, or with "" the failed ones; at most `limit` rows of each.

    `reveal` shows what the contract hides.
    """

    check: str = ""
    limit: int = 20
    reveal: bool = False


@dataclass(frozen=True)
class Finding:
    """A check's result, and the rows that break it.

    `count` is how many rows on the branch break it, None where it is about no single row.
    `on_branch` is what the branch holds in the words of the report's `found`, "" where it cannot
    tell. `notes` are sentences for people.
    """

    result: CheckResult
    count: int | None = None
    rows: tuple[Mapping[str, Any], ...] = ()
    on_branch: str = ""
    notes: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether the branch holds what the report found."""
        found = f"{self.result.found} ("  # what a report adds in parentheses is more than a number
        return not self.on_branch or found.startswith(f"{self.on_branch} (")


@dataclass(frozen=True)
class Inspection:
    """An ingestion's findings; `files` are the data files that its rows lie in."""

    ingestion: Ingestion
    report: AuditReport
    findings: tuple[Finding, ...]
    files: tuple[str, ...] = ()


def inspection(
    adapters: Adapters,
    ingestion: Ingestion,
    question: Question,
    evidence_of: Callable[[AuditReport], AbstractContextManager["Evidence"]],
    kept_out: KeptOut = lambda report, check, limit: (),
) -> Inspection:
    """Look up the rows that break an ingestion's checks, as its last audit counted them.

    `evidence_of` opens the rows that a report is about, `kept_out` looks up those that the run put
    in quarantine for a check. Raises LakegateError: NO_REPORT when the ingestion was not audited,
    UNKNOWN_CHECK, UNKNOWN_CONTRACT when nobody knows any more what it was judged by, and
    UNKNOWN_REFERENCE when its branch is gone.
    """
    report = _report(adapters, ingestion)
    results = _asked(report, question.check)
    if not results or not report.audited_hash:
        unread = tuple(Finding(result, notes=(_UNWRITTEN,)) for result in results)
        return Inspection(ingestion, report, unread)
    found = [
        _of_single(
            adapters,
            single,
            contract,
            _own(results, report, number),
            question,
            evidence_of,
            kept_out,
        )
        for number, (single, contract) in enumerate(
            zip(report.singles, ingestion.contracts, strict=True)
        )
    ]
    findings = tuple(finding for each, _ in found for finding in each)
    return Inspection(
        ingestion, report, findings, tuple(path for _, each in found for path in each)
    )


def _own(
    results: Sequence[CheckResult], report: AuditReport, number: int
) -> list[tuple[CheckResult, str]]:
    """Those results that are about one of its files, each with the check's id in the contract."""
    if not report.parts:
        return [(result, result.id) for result in results]
    before = sum(len(part.checks) for part in report.parts[:number])
    named = zip(report.checks[before:], report.parts[number].checks, strict=False)
    return [(result, check.id) for result, check in named if result in results]


def _of_single(
    adapters: Adapters,
    report: AuditReport,
    stored: tuple[str, str],
    results: Sequence[tuple[CheckResult, str]],
    question: Question,
    evidence_of: Callable[[AuditReport], AbstractContextManager["Evidence"]],
    kept_out: KeptOut,
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """What was found of one file, and the data files that its rows lie in."""
    if not results:
        return (), ()
    _require_known(stored, report)
    contract = adapters.lake.contract_at(*stored).contract
    hidden = Concealment.by(())
    if not question.reveal:
        hidden = concealment(adapters, contract, stored[0])
    checks = {check.id: check for check in contract.checks}
    with evidence_of(report) as evidence:
        findings = tuple(
            _of_contract(result, checks[id_], contract, question.limit, hidden, evidence)
            if id_ in checks
            else _of_file(result, report, hidden, question.limit, kept_out)
            for result, id_ in results
        )
        return findings, evidence.files


def _require_known(stored: tuple[str, str], report: AuditReport) -> None:
    if not stored[0]:
        message = "by which contract it was judged is not known, as the ledger was rebuilt"
        todo = f"`lakegate replay {report.ingestion}` audits it by the contract in force"
        raise LakegateError("UNKNOWN_CONTRACT", f"{message}: {todo}")


def _report(adapters: Adapters, ingestion: Ingestion) -> AuditReport:
    try:
        if ingestion.report_key:
            return adapters.lake.report(ingestion.report_key)
    except Missing:
        pass
    message = f"{ingestion.id} is {ingestion.state} and has no audit report"
    raise LakegateError("NO_REPORT", f"{message}: `lakegate show {ingestion.id}` tells more")


def _asked(report: AuditReport, check: str) -> tuple[CheckResult, ...]:
    found = tuple(r for r in report.checks if r.id == check) if check else report.failed
    if check and not found:
        known = ", ".join(result.id for result in report.checks)
        raise LakegateError("UNKNOWN_CHECK", f"there is no check {check}; the checks are: {known}")
    return found


def _of_file(
    result: CheckResult, report: AuditReport, hidden: Concealment, limit: int, kept_out: KeptOut
) -> Finding:
    """A check that every file must pass, whatever its contract says."""
    if result.counted and not report.holds_nulls:
        may_show = not (hidden.every or hidden.columns)
        more = kept_out(report, READABLE, limit) if may_show else ()
        rows = tuple({"row": row} for row in more) or result.samples[:limit]
        notes = (_LEFT_OUT,) if may_show else (_LEFT_OUT, _FORBIDDEN if hidden.every else _MASKED)
        return Finding(result, count=result.counted, rows=rows, notes=notes)
    note = _AS_LANDED if result.samples else _NO_SINGLE_ROW
    return Finding(result, rows=result.samples, notes=(note,))


def _of_contract(
    result: CheckResult,
    check: Check,
    contract: Contract,
    limit: int,
    hidden: Concealment,
    evidence: "Evidence",
) -> Finding:
    if check.checks_whole_table:
        return Finding(result, notes=(_BEYOND,))
    if check.metric is Metric.ROWS:
        there = check.expect.found(evidence.count, evidence.count)
        return Finding(result, on_branch=there, notes=(_NO_SINGLE_ROW,))
    if not about_rows(check, contract):
        notes = _IN_REPORT, *([f"{_QUERY}: {result.query}"] if result.query else [])
        return Finding(result, rows=result.samples, notes=notes)
    broken = evidence.broken(check, contract, 0 if hidden.every else limit, hidden.hides)
    masked = (_MASKED,) if hidden.columns and broken.rows else ()
    return Finding(
        result,
        count=broken.count,
        rows=broken.rows,
        on_branch=check.expect.found(broken.count, evidence.count),
        notes=(_FORBIDDEN,) if hidden.every else masked,
    )
