"""Checks of the whole table: how many rows it has, and which of the file's keys it had before.

Only key columns are read, and of the table only the files whose statistics allow a key of the
file. What the table held twice before is no fault of the file's.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakegate.contract import Check, Contract, Metric
from spark_jobs import jvm
from spark_jobs.names import quoted, table_name
from spark_jobs.run import Run
from spark_jobs.session import add_catalog

# The rows to compare with that meet a condition in Spark SQL ("" for all); None for no rows.
Had = Callable[[str], DataFrame | None]

_BEFORE = "before"
_BOUNDED = ("int", "bigint", "decimal", "date", "timestamp", "timestamp_ntz", "string", "time")
_LONGEST = 200


def count_appended(run: Run, checks: Sequence[Check]) -> dict[str, int]:
    """What each check of the whole table counts now that the run's rows are on the branch."""
    if not checks:
        return {}
    spark, spec, contract = run.spark, run.spec, run.contract
    add_catalog(spark, _BEFORE, spec.nessie_uri, spec.branch, spec.base_hash, run.token)
    before = table_name(contract.table, _BEFORE)
    there = jvm.find_iceberg_table(spark, before) is not None
    had = partial(rows_where, spark, before) if there else _nothing
    whole = table_name(contract.table)
    return {check.id: count(spark, check, whole, run.rows, contract, had) for check in checks}


def count(
    spark: SparkSession, check: Check, whole: str, rows: DataFrame, contract: Contract, had: Had
) -> int:
    """What one check of the whole table counts.

    `whole` names the table in Spark SQL as it is with the file's rows, which are `rows`.
    """
    if check.metric is Metric.ROWS:
        return spark.table(whole).count()
    return _repeated(rows, check.columns, contract, had)


def rows_where(spark: SparkSession, table: str, condition: str) -> DataFrame:
    """The rows of the table behind a name that meet a condition, "" for all."""
    rows = spark.table(table)
    return rows.where(condition) if condition else rows


def _nothing(_: str) -> None:
    return None


def _repeated(rows: DataFrame, columns: tuple[str, ...], contract: Contract, had: Had) -> int:
    """How many of `rows` repeat the key of an earlier one of them, or of the rows had before."""
    keys = [f"key{n}" for n in range(len(columns))]
    whole = reduce(lambda a, b: a & b, [F.col(quoted(name)).isNotNull() for name in columns])
    groups = _keys(rows.where(whole), columns).groupBy(*keys).agg(F.count(F.lit(1)).alias("n"))
    groups = groups.persist()
    try:
        beyond_first = F.coalesce(F.sum(F.col("n") - 1), F.lit(0))
        ends = [end(key).cast("string") for key in keys for end in (F.min, F.max)]
        within, *found = groups.agg(beyond_first, *ends).collect()[0]
        if found[0] is None:
            return 0
        there = had(_condition(columns, found, contract))
        if there is None:
            return int(within)
        met = _keys(there, columns).join(groups.select(*keys), keys, "left_semi")
        return int(within) + met.distinct().count()
    finally:
        groups.unpersist()


def _keys(rows: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    named: list[Expression] = [
        F.col(quoted(name)).alias(f"key{n}") for n, name in enumerate(columns)
    ]
    return rows.select(*named)


def _condition(columns: tuple[str, ...], ends: list[str | None], contract: Contract) -> str:
    """That a row's key lies between the file's least and greatest, column by column."""
    limits = []
    for name, least, greatest in zip(columns, ends[::2], ends[1::2], strict=True):
        column = contract.column(name)
        if column.kind in _BOUNDED:
            limits += [
                f"{quoted(name)} {operator} CAST({_literal(end)} AS {column.type})"
                for operator, end in ((">=", least), ("<=", greatest))
                if end is not None and len(end) <= _LONGEST and end.isprintable()
            ]
    return " AND ".join(limits)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
