"""The audit: what was counted, against what the contract expects."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakegate.contract import Check, Contract, Metric, Scope, Severity
from lakegate.report import CheckResult, Reason, Status, Verdict
from spark_jobs.checks import BAD_ROWS, ROWS, count_name, is_row_check, violation
from spark_jobs.names import quoted
from spark_jobs.read import BAD_ROW
from spark_jobs.schema import Finding

_SAMPLES = 3
_SAMPLE_COLUMNS = 8
_WIDEST = 200
_CODES = {"file.rows_readable": "BAD_ROWS", "file.has_rows": "NO_ROWS"}


def count_duplicates(rows: DataFrame, contract: Contract) -> dict[str, int]:
    """For each check of uniqueness, how many rows are beyond the first with their key.

    A job of its own a check, over its columns alone: what is distinct cannot be counted in passing.
    """
    return {
        count_name(n): _duplicates(rows, check.columns)
        for n, check in enumerate(contract.checks)
        if check.metric is Metric.DUPLICATE and check.scope is Scope.FILE
    }


def judge(contract: Contract, counts: Mapping[str, int]) -> tuple[CheckResult, ...]:
    """Every check's result. `counts` has `ROWS`, `BAD_ROWS` and `count_name(n)` for check `n`."""
    rows = counts[ROWS]
    implied = [_columns_fit(), *([] if _expects_rows(contract) else [_has_rows(rows)])]
    written = [
        result(check, rows if _counts_rows(check) else counts[count_name(n)], rows)
        for n, check in enumerate(contract.checks)
    ]
    return (*implied, _rows_readable(counts[BAD_ROWS], rows), *written)


def result(check: Check, value: int, rows: int) -> CheckResult:
    """The outcome of one check that counted `value`, for a file of so many rows."""
    met = check.expect.met(value, rows)
    missed = Status.FAIL if check.severity is Severity.ERROR else Status.WARN
    return CheckResult(
        id=check.id,
        metric=check.metric.value,
        columns=check.columns,
        severity=check.severity.value,
        status=Status.PASS if met else missed,
        expected=check.expected,
        found=check.found(value, rows),
        message=check.description or check.measure,
        counted=value,
    )


def with_samples(
    results: Sequence[CheckResult], rows: DataFrame, contract: Contract
) -> tuple[CheckResult, ...]:
    """The results, with a few of the rows that break each failed check where that is allowed."""
    if not contract.allow_samples:
        return tuple(results)
    checks = {check.id: check for check in contract.checks}
    return tuple(
        replace(result, samples=_samples(result, checks.get(result.id), rows, contract))
        if result.status is not Status.PASS
        else result
        for result in results
    )


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
    """What the results mean for the file, and in one sentence why it is rejected if it is."""
    failed = [result for result in results if result.status is Status.FAIL]
    if not failed:
        return Verdict.PASSED, None
    names = ", ".join(result.id for result in failed[:5]) + (", …" if len(failed) > 5 else "")
    code = _CODES.get(failed[0].id, "CHECKS_FAILED")
    message = f"{len(failed)} of {len(results)} checks failed: {names}"
    return Verdict.REJECTED, Reason(code, message)


def _duplicates(rows: DataFrame, columns: tuple[str, ...]) -> int:
    keys = [F.col(quoted(name)) for name in columns]
    whole = reduce(lambda a, b: a & b, [key.isNotNull() for key in keys])
    groups = rows.where(whole).groupBy(*keys).agg(F.count(F.lit(1)).alias("n"))
    return int(groups.agg(F.coalesce(F.sum(F.col("n") - 1), F.lit(0))).collect()[0][0])


def _columns_fit() -> CheckResult:
    expected = "the contract's columns, each of a type that fits"
    return _implied("file.columns", expected, "these", ok=True)


def _rows_readable(bad: int, rows: int) -> CheckResult:
    return _implied(
        "file.rows_readable",
        "every row has all its cells, each of its column's type",
        f"{bad:,} of {rows:,} rows do not" if bad else f"all {rows:,} rows do",
        ok=bad == 0,
    )


def _has_rows(rows: int) -> CheckResult:
    return _implied("file.has_rows", "at least 1 row", f"{rows:,} rows", ok=rows > 0)


def _expects_rows(contract: Contract) -> bool:
    return any(_counts_rows(check) for check in contract.checks)


def _counts_rows(check: Check) -> bool:
    return check.metric is Metric.ROWS and check.scope is Scope.FILE


def _implied(id_: str, expected: str, found: str, *, ok: bool) -> CheckResult:
    """A check that every file must pass, whatever its contract says."""
    status = Status.PASS if ok else Status.FAIL
    return CheckResult(id_, "file", (), Severity.ERROR.value, status, expected, found)


def _samples(
    result: CheckResult, check: Check | None, rows: DataFrame, contract: Contract
) -> tuple[Mapping[str, str | None], ...]:
    if result.id == "file.rows_readable":
        return _bad_rows(rows, contract)
    if check is None or not is_row_check(check):
        return ()
    types = {column.name: column.type for column in contract.columns}
    shown = dict.fromkeys((*check.columns, *types)).keys()
    names = [quoted(name) for name in list(shown)[:_SAMPLE_COLUMNS]]
    broken = rows.where(violation(check, types)).select(*names)
    return _texts(broken, {column.name for column in contract.columns if column.sensitive})


def _bad_rows(rows: DataFrame, contract: Contract) -> tuple[Mapping[str, str | None], ...]:
    """A few rows as they stand in the file; none where any of their cells must not be shown."""
    if any(column.sensitive for column in contract.columns):
        return ()
    # Whole rows: Spark refuses to read from JSON nothing but what it could not read.
    found = rows.where(F.col(BAD_ROW).isNotNull()).limit(_SAMPLES).collect()
    return tuple({"row": str(row[BAD_ROW])[:_WIDEST]} for row in found)


def _texts(rows: DataFrame, hidden: set[str]) -> tuple[Mapping[str, str | None], ...]:
    texts = rows.select([F.col(quoted(n)).cast("string").alias(n) for n in rows.columns])
    return tuple(
        {
            name: "(hidden)" if name in hidden else value[:_WIDEST] if value else value
            for name, value in row.asDict().items()
        }
        for row in texts.limit(_SAMPLES).collect()
    )
