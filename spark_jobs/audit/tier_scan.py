"""Tiers 3 and 4: checks of rows and of columns' values, as aggregates.

The append observes them while it writes (tier 3). Others take a scan of the new data files after it
(tier 4).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from pyspark.sql import Column as Expression
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakegate.contract.checks import OF_ROWS, OF_VALUES, Check, Metric
from lakegate.contract.model import Contract
from lakegate.contract.rules import Condition
from lakegate.errors import Permanent
from lakegate.report import Tier
from spark_jobs.audit import check_sql, tier_statistics
from spark_jobs.audit.run import Measured, Run
from spark_jobs.spark import jvm, sql_parser
from spark_jobs.spark.errors import BAD_VALUE, explain

# With more aggregates Spark's generated code is too large for the JVM to compile well.
MAX_AGGREGATES = 60
Counts = Mapping[str, object]


def observable(contract: Contract) -> list[Check]:
    """Return the checks that the append measures while it writes the rows.

    Checks that statistics may answer for free are left out. So are the data owner's own conditions:
    if one fails on a row, the append would fail with it.
    """
    able = [check for check in contract.checks if is_measured(check) and not _has_own_sql(check)]
    dear = [check for check in able if check.basis.metric is not Metric.QUANTILE]
    left = [check for check in dear if not tier_statistics.may_answer(check, contract)]
    return [check for check in left if not check.quarantine][:MAX_AGGREGATES]


def aggregates(checks: Sequence[Check], contract: Contract) -> Iterator[Expression]:
    """Yield the aggregates that measure the checks."""
    for n, check in enumerate(checks):
        yield F.expr(_aggregate(check, contract)).alias(f"value_{n}")
        if check.where:
            yield F.count_if(F.expr(check_sql.checks_row(check))).alias(f"rows_{n}")


def read(checks: Sequence[Check], found: Counts, rows: int, tier: Tier) -> dict[str, Measured]:
    """Return the measures, by check id, from the values of `aggregates` over so many rows."""
    return {
        check.id: Measured(
            _number(found[f"value_{n}"]), int(str(found.get(f"rows_{n}", rows))), tier
        )
        for n, check in enumerate(checks)
    }


def answer(run: Run, checks: Iterable[Check]) -> Mapping[str, Measured]:
    """Return the measures, by check id, of all checks that a scan of the new data files can answer.

    A job has at most `MAX_AGGREGATES`. Checks of one column share a job, so that each column is
    read about once.
    """
    able = sorted(filter(is_measured, checks), key=lambda check: check.columns)
    measured: dict[str, Measured] = {}
    for start in range(0, len(able), MAX_AGGREGATES):
        measured |= _scanned(run, able[start : start + MAX_AGGREGATES])
    return measured


def _scanned(run: Run, checks: Sequence[Check]) -> dict[str, Measured]:
    """Measure all checks in one scan; if it fails, scan each half until the bad check is alone."""
    try:
        for check in checks:
            check_own_sql(run.spark, check)
        found = run.rows.agg(*aggregates(checks, run.contract)).collect()[0].asDict()
    except (*jvm.JavaError, Permanent) as error:
        if len(checks) == 1:
            return {checks[0].id: Measured(None, run.written, Tier.SCAN, _problem(run, error))}
        half = len(checks) // 2
        return _scanned(run, checks[:half]) | _scanned(run, checks[half:])
    return read(checks, found, run.written, Tier.SCAN)


def _problem(run: Run, error: Exception) -> str:
    """Return why a check could not be evaluated. Raises Transient where a retry may help."""
    if isinstance(error, Permanent):
        return error.message
    reason = explain(error, "a check cannot be evaluated", "CHECK_FAILED")
    if not isinstance(reason, Permanent):
        raise reason from error
    if run.contract.quotes_files and reason.code != BAD_VALUE:
        return jvm.root_message(error)
    return reason.message


def check_own_sql(spark: SparkSession, check: Check) -> None:
    """Raise Permanent BAD_CONDITION where the data owner's condition is not a single expression."""
    own = [check.basis.rule.sql] if isinstance(check.basis.rule, Condition) else []
    for text in (*own, *([check.where] if check.where else [])):
        sql_parser.require_expression(spark, text)


def _aggregate(check: Check, contract: Contract) -> str:
    basis = check.basis
    if basis.metric in OF_VALUES:
        return check_sql.value(basis, contract)
    if basis.metric is Metric.ROWS:
        return f"count_if({check_sql.checks_row(basis)})"
    return f"count_if({check_sql.counts_row(basis, contract)})"


def is_measured(check: Check) -> bool:
    basis = check.basis
    if basis.metric is Metric.ROWS:
        return bool(basis.where) and not check.checks_whole_table
    return basis.metric in (*OF_ROWS, *OF_VALUES) and not check.checks_whole_table


def _has_own_sql(check: Check) -> bool:
    return bool(check.where) or isinstance(check.basis.rule, Condition)


def _number(value: object) -> int | float | Decimal | None:
    return value if isinstance(value, int | float | Decimal) else None
