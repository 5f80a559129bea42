"""Checks that need a job over keys: what is repeated in the file, and in the whole table."""

from collections.abc import Iterable, Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakegate.checks import Check, Metric, Scope
from lakegate.report import Tier
from spark_jobs import beyond
from spark_jobs.names import quoted
from spark_jobs.run import Measured, Run


def answer(run: Run, checks: Iterable[Check]) -> Mapping[str, Measured]:
    """The measures, by check id, of all checks over keys."""
    asked = list(checks)
    found = {
        check.id: _duplicates(run.rows, check.columns)
        for check in asked
        if check.metric is Metric.DUPLICATE and check.scope is Scope.FILE
    }
    found |= beyond.count_appended(run, [c for c in asked if c.scope is Scope.TABLE])
    return {id_: Measured(value, run.written, Tier.KEYS) for id_, value in found.items()}


def _duplicates(rows: DataFrame, columns: tuple[str, ...]) -> int:
    keys = [F.col(quoted(name)) for name in columns]
    whole = reduce(lambda a, b: a & b, [key.isNotNull() for key in keys])
    groups = rows.where(whole).groupBy(*keys).agg(F.count(F.lit(1)).alias("n"))
    return int(groups.agg(F.coalesce(F.sum(F.col("n") - 1), F.lit(0))).collect()[0][0])
