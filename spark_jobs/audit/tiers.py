"""The audit: what was measured, against what the contract expects."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lakegate.contract.checks import Check, Metric, Scope, Severity
from lakegate.contract.model import Contract
from lakegate.report import READABLE, CheckResult, Reason, Status, Tier, Verdict
from spark_jobs.audit import check_sql, tier_keys, tier_scan, tier_statistics
from spark_jobs.audit.run import Measured, Run
from spark_jobs.schema.compare import Finding
from spark_jobs.spark.iceberg import table_name

FILLED, KEPT_OUT = "file.has_rows", "file.quarantine"
HIDDEN = "(hidden)"  # of columns that the contract calls confidential, or the like
_CODES = {READABLE: "BAD_ROWS", FILLED: "NO_ROWS", KEPT_OUT: "QUARANTINE_FULL"}
_TIERS = (tier_statistics.answer, tier_scan.answer, tier_keys.answer)


@dataclass(frozen=True)
class Rows:
    """How many rows a file has, cannot be read, were kept out of the table, and are in it.

    `nulled` says that those that cannot be read are in the table, with null for each such cell.
    """

    read: int
    bad: int
    kept_out: int
    nulled: bool = False

    @property
    def written(self) -> int:
        """The rows that the append put into the table."""
        return self.read - self.kept_out


def measure(run: Run, ridden: Mapping[str, Measured]) -> dict[str, Measured]:
    """The measure of every check of the contract, by its id.

    `ridden` are those that the append's own pass has answered; each tier is asked what those before
    it left open.
    """
    found = dict(ridden)
    for answer in _TIERS:
        found |= answer(run, [check for check in run.contract.checks if check.id not in found])
    return found


def judge(
    contract: Contract, rows: Rows, measured: Mapping[str, Measured]
) -> tuple[CheckResult, ...]:
    """Every check's result: of those that every file must pass, and of the contract's."""
    return (
        *_of_file(contract, rows),
        *[result(check, measured[check.id], contract) for check in contract.checks],
    )


def result(check: Check, measured: Measured, contract: Contract) -> CheckResult:
    """The outcome of one check."""
    value = measured.value
    found = CheckResult(
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
        query=check_sql.finding(check, contract, table_name),
    )
    if measured.problem or measured.skipped:
        could = "could not be measured" if measured.problem else "was not asked"
        return replace(found, found=could, message=measured.problem or measured.skipped)
    return replace(found, found=HIDDEN, value="") if contract.conceals(check) else found


def refused(findings: Sequence[Finding]) -> tuple[tuple[CheckResult, ...], Reason]:
    """Results and reason for a file whose columns break the contract: its rows were not read."""
    results = tuple(
        replace(
            _columns_fit(),
            id=f"file.columns.{finding.column}",
            columns=(finding.column,),
            status=Status.FAIL,
            found=finding.message,
        )
        for finding in findings
    )
    message = "; ".join(finding.message for finding in findings)
    return results, Reason(findings[0].code, message[:1000])


def verdict(results: Sequence[CheckResult]) -> tuple[Verdict, Reason | None]:
    """What the results mean for the file, and in one sentence why it is not published if it is not.

    A check that could not be measured is never a pass, and neither is an audit without any check.
    """
    broken = [result for result in results if result.status is Status.ERROR]
    failed = [result for result in results if result.status is Status.FAIL]
    if broken:
        message = f"{_names(broken, results)} could not be evaluated: {broken[0].message}"
        return Verdict.ERRORED, Reason("CHECK_FAILED_TO_RUN", message)
    if all(result.status is Status.SKIPPED for result in results):
        return Verdict.ERRORED, Reason("NOTHING_CHECKED", "no check was evaluated")
    if not failed:
        return Verdict.PASSED, None
    code = _CODES.get(failed[0].id, "CHECKS_FAILED")
    return Verdict.REJECTED, Reason(code, f"{_names(failed, results, ' failed')}")


def _names(some: Sequence[CheckResult], every: Sequence[CheckResult], verb: str = "") -> str:
    names = ", ".join(each.id for each in some[:5]) + (", …" if len(some) > 5 else "")
    return f"{len(some)} of {len(every)} checks{verb}: {names}" if verb else names


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


def _of_file(contract: Contract, rows: Rows) -> Iterator[CheckResult]:
    yield _columns_fit()
    limits = contract.quarantine
    yield replace(
        _implied(
            READABLE,
            "every row has all its cells, each of its column's type",
            _unreadable(rows) if rows.bad else f"all {rows.read:,} rows do",
            ok=not rows.bad or bool(limits and limits.unreadable),
        ),
        counted=rows.bad,
    )
    if not any(c.metric is Metric.ROWS and c.scope is Scope.FILE for c in contract.checks):
        yield _implied(FILLED, "at least 1 row", f"{rows.written:,} rows", ok=rows.written > 0)
    if limits:
        found = f"{rows.kept_out:,} of {rows.read:,} rows were kept out"
        ok = limits.allows(rows.kept_out, rows.read)
        kept = _implied(KEPT_OUT, f"{limits.wording} kept out", found, ok=ok)
        yield replace(kept, status=Status.WARN) if ok and rows.kept_out else kept


def _unreadable(rows: Rows) -> str:
    what = "have null in their place" if rows.nulled else "are kept out"
    return f"{rows.bad:,} of {rows.read:,} rows do not, and {what}"


def _columns_fit() -> CheckResult:
    expected = "the contract's columns, each of a type that fits"
    return _implied("file.columns", expected, "these", ok=True)


def _implied(id_: str, expected: str, found: str, *, ok: bool) -> CheckResult:
    """A check that every file must pass, whatever its contract says."""
    status = Status.PASS if ok else Status.FAIL
    error = Severity.ERROR.value
    return CheckResult(id_, "file", (), error, status, expected, found, tier=Tier.FILE.value)
