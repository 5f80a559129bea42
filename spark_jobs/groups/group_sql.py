"""Have Spark answer the checks of a group's files that Arrow cannot answer, by one query.

It reads the rows that were just written from memory: a group into a table with many partitions has
thousands of small data files, and opening each of them costs far more than its rows.
"""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakegate.contract.checks import Check
from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from spark_jobs.audit import check_sql, tier_scan, tiers
from spark_jobs.audit.run import Measured
from spark_jobs.files.arrow.types import schema_of
from spark_jobs.files.source import FILE

_PARTITIONS = "spark.sql.shuffle.partitions"
_TASKS = 4  # of a query: Spark makes one of each batch, and its own batches are small


def left_for_sql(rows: Iterable[pa.Table], checks: Sequence[Check], contract: Contract) -> pa.Table:
    """Return the rows of a file with the columns that the checks may read, one at least."""
    asked = "\n".join(_text(check, contract) for check in checks).casefold()
    columns = contract.table_columns
    needed = [c for c in columns if "`" in c.name or c.name.casefold() in asked] or columns[:1]
    schema = schema_of(needed)
    return pa.concat_tables([each.select(schema.names).cast(schema) for each in rows])


def _text(check: Check, contract: Contract) -> str:
    """Return the SQL of a check, and the names of its columns."""
    own = [tier_scan.sql_of(check, contract)] if tier_scan.is_measured(check) else []
    return "\n".join([*own, check_sql.checks_row(check), *check.columns])


def measured(
    spark: SparkSession, contract: Contract, files: Mapping[str, pa.Table]
) -> Mapping[str, Mapping[str, Measured]]:
    """Return the measures of a contract's checks for each file, whose rows are `left_for_sql`.

    Raises Permanent where the contract's own SQL is refused, and one of `JavaError` where a check
    fails on a row.
    """
    for check in contract.checks:
        tier_scan.check_own_sql(spark, check)
    named = [rows.append_column(FILE, pa.repeat(id_, len(rows))) for id_, rows in files.items()]
    rows = pa.concat_tables(named)
    columns = [c for c in contract.table_columns if c.name in rows.column_names]
    types = [*(f"{quoted(c.name)} {c.type}" for c in columns), f"{FILE} string"]
    usual = str(spark.conf.get(_PARTITIONS))
    spark.conf.set(_PARTITIONS, _TASKS)
    try:
        return tiers.measure_files(in_memory(spark, rows, types), contract)
    finally:
        spark.conf.set(_PARTITIONS, usual)  # as the session may merge rows into a large table


def in_memory(spark: SparkSession, rows: pa.Table, types: Sequence[str]) -> DataFrame:
    """Return rows in memory as Spark's, whose columns have these names and types, in few tasks."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", len(rows) // _TASKS + 1)
    return spark.createDataFrame(rows.combine_chunks(), ", ".join(types))
