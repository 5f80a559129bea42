"""Judge a file: each check's result, and the verdict on all of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lakegate.audit import causes
from lakegate.audit.diagnosis import HIDDEN, WrongColumns
from lakegate.audit.report import (
    HAS_ROWS,
    QUARANTINE_LIMIT,
    READABLE,
    CheckResult,
    Reason,
    Status,
    Tier,
    Verdict,
)
from lakegate.contract.checks import Check, Metric, Scope, Severity
from lakegate.contract.model import Contract
from spark_jobs.audit import check_sql
from spark_jobs.audit.run import Measured, RowCounts
from spark_jobs.schema.diagnosis import Finding
from spark_jobs.spark.iceberg import table_name

_CODES = {READABLE: "BAD_ROWS", HAS_ROWS: "NO_ROWS", QUARANTINE_LIMIT: "QUARANTINE_FULL"}


def judge(
    contract: Contract, rows: RowCounts, measured: Mapping[str, Measured]
) -> tuple[CheckResult, ...]:
    """Return every result: of the checks that apply to every file, and of the contract's checks.

    Above the limit of the quarantine whatever would have been quarantined fails the file.
    """
    results = [result(check, measured[check.id], contract) for check in contract.checks]
    if _is_full(contract, rows):
        keeping = {check.id for check in contract.checks if check.quarantine}
        results = [_failing(each) if each.id in keeping else each for each in results]
    return (*_file_results(contract, rows), *results)


def _is_full(contract: Contract, rows: RowCounts) -> bool:
    limits = contract.quarantine
    return limits is not None and not limits.allows(rows.quarantined, rows.read)


def _failing(answer: CheckResult) -> CheckResult:
    return replace(answer, status=Status.FAIL) if answer.status is Status.WARN else answer


def result(check: Check, measured: Measured, contract: Contract) -> CheckResult:
    """Return the result of one check."""
    value = measured.value
    answer = CheckResult(
        id=check.id,
        metric=check.metric.value,
        columns=check.columns,
        severity=check.severity.value,
        status=_status(check, measured),
        expected=check.expected,
        found=check.found(value, measured.rows) + (f" ({measured.note})" if measured.note else ""),
        message=check.description or check.measure,
        counted=value if isinstance(value, int) else None,
        value="" if value is None else str(value),
        tier=measured.tier.value,
        query=check_sql.evidence_query(check, contract, table_name),
    )
    if measured.problem or measured.skipped:
        found_text = "could not be measured" if measured.problem else "skipped"
        return replace(answer, found=found_text, message=measured.problem or measured.skipped)
    return replace(answer, found=HIDDEN, value="") if contract.conceals(check) else answer


def refused_columns(
    findings: Sequence[Finding], wrong: WrongColumns | None = None
) -> tuple[tuple[CheckResult, ...], Reason]:
    """Return results and reason for a file whose columns break the contract; no row was read.

    The reason is the sentence of `wrong`, which says the plain findings completely.
    """
    results = tuple(
        replace(
            _columns_fit(),
            id=f"file.columns.{finding.column}",
            columns=(finding.column,),
            status=Status.FAIL,
            found=finding.message,
            is_told=bool(wrong) and finding.is_plain,
        )
        for finding in findings
    )
    message = wrong.sentence if wrong else "; ".join(each.message for each in findings)
    return results, Reason(findings[0].code, message[:1000])


def verdict(
    results: Sequence[CheckResult], contract: Contract | None = None
) -> tuple[Verdict, Reason | None]:
    """Return the verdict, and the reason unless the file passed; the contract gives it words.

    A check that could not be measured never passes, nor does an audit without any evaluated check.
    """
    errors = [result for result in results if result.status is Status.ERROR]
    failed = [result for result in results if result.status is Status.FAIL]
    if errors:
        message = f"{_names(errors)} could not be evaluated: {errors[0].message}"
        return Verdict.ERRORED, Reason("CHECK_FAILED_TO_RUN", message)
    if all(result.status is Status.SKIPPED for result in results):
        return Verdict.ERRORED, Reason("NOTHING_CHECKED", "no check was evaluated")
    if not failed:
        return Verdict.PASSED, None
    code = _CODES.get(failed[0].id, "CHECKS_FAILED")
    rules = {check.id: check for check in contract.checks} if contract else {}
    return Verdict.REJECTED, Reason(code, causes.sentence(failed, rules))


def _names(some: Sequence[CheckResult]) -> str:
    return ", ".join(each.id for each in some[:5]) + (", …" if len(some) > 5 else "")


def _status(check: Check, measured: Measured) -> Status:
    if measured.problem:
        return Status.ERROR
    if measured.skipped:
        return Status.SKIPPED
    if not check.expect.met(measured.value, measured.rows):
        blocks = check.severity is Severity.ERROR and not check.quarantine
        return Status.FAIL if blocks else Status.WARN
    fine = check.warn is None or check.warn.met(measured.value, measured.rows)
    return Status.PASS if fine else Status.WARN


def _file_results(contract: Contract, rows: RowCounts) -> Iterator[CheckResult]:
    yield _columns_fit()
    limits, full = contract.quarantine, _is_full(contract, rows)
    may_lack = bool(limits and limits.unreadable and not full)
    expected = "every row has all its cells, each of its column's type"
    readable = _file_result(READABLE, expected, _read(rows), ok=not rows.bad or may_lack)
    status = Status.WARN if rows.bad and may_lack else readable.status
    yield replace(readable, counted=rows.bad, status=status, message=_what_became(rows))
    if limits:
        words = f"{rows.quarantined:,} of {rows.read:,} rows were quarantined"
        limit = _file_result(QUARANTINE_LIMIT, f"{limits.wording} quarantined", words, ok=not full)
        yield replace(limit, status=Status.WARN) if rows.quarantined and not full else limit
    if not any(c.metric is Metric.ROWS and c.scope is Scope.FILE for c in contract.checks):
        yield _file_result(
            HAS_ROWS, "at least 1 row", f"{rows.written:,} rows", ok=rows.written > 0
        )


def _read(rows: RowCounts) -> str:
    many, every = f"{rows.bad:,}", f"{rows.read:,}"
    return (
        f"{many} of {every} rows could not be read" if rows.bad else f"all {every} rows were read"
    )


def _what_became(rows: RowCounts) -> str:
    if not rows.bad:
        return ""
    return "such cells became null" if rows.nulled else "these rows are quarantined"


def _columns_fit() -> CheckResult:
    expected = "the contract's columns, with compatible types"
    return _file_result("file.columns", expected, "as expected", ok=True)


def _file_result(id_: str, expected: str, found: str, *, ok: bool) -> CheckResult:
    """Return the result of a check that applies to every file, whatever its contract says."""
    status = Status.PASS if ok else Status.FAIL
    error = Severity.ERROR.value
    return CheckResult(id_, "file", (), error, status, expected, found, tier=Tier.FILE.value)
