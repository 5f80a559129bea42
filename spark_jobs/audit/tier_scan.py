"""Tier 3: checks of rows and of columns' values, as aggregates over the rows of data files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.audit.report import Tier
from lakegate.contract.checks import OF_ROWS, OF_VALUES, Check, Metric
from lakegate.contract.model import Contract
from lakegate.contract.rules import Condition
from lakegate.errors import Permanent
from spark_jobs.audit import check_sql
from spark_jobs.audit.run import Measured, Run
from spark_jobs.files.source import FILE
from spark_jobs.spark import jvm, sql_parser
from spark_jobs.spark.errors import explain, masked

# With more aggregates Spark's generated code is too large for the JVM to compile well.
_MOST_AGGREGATES = 60
_ROWS = "rows"
Counts = Mapping[str, Any]
Measures = dict[str, Measured]


def answer(run: Run, checks: Iterable[Check]) -> Measures:
    """Return the measures, by check id, of all checks that a scan of the run's rows can answer."""
    return scanned(run, run.rows, list(filter(is_measured, checks)))


def scanned(run: Run, rows: DataFrame, checks: Sequence[Check]) -> Measures:
    """Return the measures of the checks over `rows`, by check id, with one job for some of them.

    If a job fails, each half is measured until the bad check is alone. Raises Transient where a
    retry may help.
    """
    parts = _together(checks)
    return reduce(or_, (_by_halves(run, rows, part) for part in parts), {})


def by_file(rows: DataFrame, contract: Contract) -> dict[str, Measures]:
    """Return the measures, by check id, of all checks that a scan of many files can answer.

    They are those of each file with rows, by its address in `FILE`. Raises one of `JavaError` where
    a file cannot be read, or a condition of the contract cannot be evaluated.
    """
    measures: dict[str, Measures] = {}
    for checks in _together(list(filter(is_measured, contract.checks))):
        for file, each in _measured(rows, checks, contract, FILE).items():
            measures[file] = measures.get(file, {}) | each
    return measures


def is_measured(check: Check) -> bool:
    """Return if the check belongs to this tier."""
    of_rows = check.basis.metric in (*OF_ROWS, *OF_VALUES, Metric.ROWS)
    return of_rows and not check.checks_whole_table


def check_own_sql(spark: SparkSession, check: Check) -> None:
    """Raise Permanent BAD_CONDITION where the data owner's condition is not a single expression."""
    own = [check.basis.rule.sql] if isinstance(check.basis.rule, Condition) else []
    for text in (*own, *([check.where] if check.where else [])):
        sql_parser.require_expression(spark, text)


def problem(run: Run, error: Exception) -> str:
    """Return why a check could not be measured. Raises Transient where a retry may help."""
    why = error
    if isinstance(error, jvm.JavaError):
        explained = explain(error, "the check cannot be measured", "CHECK_FAILED")
        why = masked(explained, run.contract)
    if not isinstance(why, Permanent):
        raise why from error
    return why.message


def _together(checks: Sequence[Check]) -> Iterator[Sequence[Check]]:
    """Yield the checks of each job. Those of one column share it, so it is read about once."""
    able = sorted(checks, key=lambda check: check.columns)
    for start in range(0, len(able), _MOST_AGGREGATES):
        yield able[start : start + _MOST_AGGREGATES]


def _by_halves(run: Run, rows: DataFrame, checks: Sequence[Check]) -> Measures:
    try:
        for check in checks:
            check_own_sql(run.spark, check)
        (measures,) = _measured(rows, checks, run.contract).values()
    except (*jvm.JavaError, Permanent) as error:
        why = problem(run, error)
        if len(checks) == 1:
            return {checks[0].id: Measured(None, run.written, Tier.SCAN, why)}
        half = len(checks) // 2
        return _by_halves(run, rows, checks[:half]) | _by_halves(run, rows, checks[half:])
    return measures


def _measured(
    rows: DataFrame, checks: Sequence[Check], contract: Contract, *by: str
) -> dict[str, Measures]:
    """Return the measures by `FILE`, or those of all rows under "" if it is not asked for."""
    asked = [F.count(F.lit(1)).alias(_ROWS), *aggregates(checks, contract)]
    counts = [row.asDict() for row in rows.groupBy(*by).agg(*asked).collect()]
    return {each.get(FILE, ""): read(checks, each, each[_ROWS]) for each in counts}


def aggregates(checks: Sequence[Check], contract: Contract) -> Iterator[Expression]:
    """Yield the aggregates that measure the checks."""
    for n, check in enumerate(checks):
        yield F.expr(sql_of(check, contract)).alias(f"value_{n}")
        if check.where:
            yield F.count_if(F.expr(check_sql.checks_row(check))).alias(f"rows_{n}")


def read(checks: Sequence[Check], counts: Counts, rows: int) -> Measures:
    """Return the measures, by check id, from the values of `aggregates` over so many rows."""
    return {
        check.id: Measured(_number(counts[f"value_{n}"]), counts.get(f"rows_{n}", rows), Tier.SCAN)
        for n, check in enumerate(checks)
    }


def sql_of(check: Check, contract: Contract) -> str:
    """Return the aggregate that measures a check of this tier."""
    basis = check.basis
    if basis.metric in OF_VALUES:
        return check_sql.value(basis, contract)
    if basis.metric is Metric.ROWS:
        return f"count_if({check_sql.checks_row(basis)})"
    return f"count_if({check_sql.counts_row(basis, contract)})"


def _number(value: object) -> int | float | Decimal | None:
    return value if isinstance(value, int | float | Decimal) else None
