"""Let a file's rows replace those of its table: by their key, or by partitions.

A file of an upsert is first appended, and audited so. Then its branch is reset, and the rows of the
very data files that were audited are merged into main's table, in one commit. The data files of the
append are in no table any more. An overwrite needs no second step: the append itself is one.
"""

import shlex
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from lakegate.contract.reading.write_mode import WriteMode
from lakegate.errors import Permanent
from lakegate.job.change import Effect
from spark_jobs.audit.check_sql import string
from spark_jobs.audit.run import Run
from spark_jobs.spark import iceberg, jvm
from spark_jobs.spark.errors import explain
from spark_jobs.spark.iceberg import table_name
from spark_jobs.write.append import INGESTION, Opened, Target

_PLACE = "_corrupt_record"  # a name that no column of a contract has
_COUNTED = "spark.merge-into.num-target-rows-"
# The setting by which commits of Spark SQL name an ingestion.
NAMES_INGESTION = f"spark.sql.iceberg.snapshot-property.{INGESTION}"


def require_replaceable(table: Any, contract: Contract) -> None:
    """Raise Permanent unless rows can be replaced by the partitions of the table.

    Iceberg replaces data files of the present partitions only.
    """
    snapshot = table.currentSnapshot()
    if snapshot is None:
        return
    present = table.spec().specId()
    manifests = snapshot.dataManifests(table.io())
    older = (each for each in jvm.items_of(manifests) if each.partitionSpecId() != present)
    if any(each.hasAddedFiles() or each.hasExistingFiles() for each in older):
        first = contract.columns[0].name
        first = first if first.isascii() and first.isidentifier() else quoted(first)
        sql = shlex.quote(f"UPDATE {contract.table} SET {first} = {first}")
        message = (
            "the table has data files from before its partitions were changed, whose rows an "
            "overwrite would leave: let a file come with these partitions and writeMode: append, "
            f"have all rows written again by `lakegate change {contract.table} --sql {sql}`, and "
            "set overwrite after that"
        )
        raise Permanent("PARTITIONS_CHANGED", message)


def row_count(spark: SparkSession, contract: Contract) -> int:
    """Return the number of rows of the branch's table."""
    return spark.table(table_name(contract.table)).count()


def checked(effect: Effect) -> Effect:
    """Return an effect whose counts agree. Raises Permanent COUNT_MISMATCH."""
    before, added, removed = effect.before, effect.added, effect.removed
    if removed < 0 or removed > before or before + added - removed != effect.after:
        message = (
            f"of {before:,} rows {removed:,} were removed and {added:,} added, but there are "
            f"{effect.after:,}"
        )
        raise Permanent("COUNT_MISMATCH", message)
    return effect


def has_sound_keys(rows: DataFrame, mode: WriteMode) -> bool:
    """Return if each key is there once, or at most once at the same place, and none is null."""
    keys = [F.col(quoted(name)) for name in mode.key]
    place = [F.col(quoted(name)) for name in filter(None, (mode.latest_by,))]
    alike = rows.groupBy(*keys, *place).agg(F.count(F.lit(1)).alias(_PLACE))
    is_null = F.lit(False)
    for column in (*keys, *place):
        is_null = is_null | column.isNull()
    return alike.where((F.col(_PLACE) > 1) | is_null).limit(1).isEmpty()


def upsert(run: Run, opened: Opened, branch: Target) -> tuple[str, Effect]:
    """Merge the rows of an audited append into main's table; return the commit and its effect.

    The append itself is undone. Raises as `put`.
    """
    mode = run.contract.write_mode
    source = _latest(run.rows, mode)
    branch.reset(opened.at)
    newer = _newer(mode, table_name(run.contract.table))
    return put(run.spark, source, run.contract, opened, branch, run.spec.ingestion, newer)


def put(
    spark: SparkSession,
    source: DataFrame,
    contract: Contract,
    opened: Opened,
    branch: Target,
    ingestion: str,
    newer: str = "true",
) -> tuple[str, Effect]:
    """Put rows with different keys into the table by their key, where the condition `newer` holds.

    Returns the commit, which names the `ingestion`, and its effect. Raises Permanent if the rows
    cannot be merged, Transient when a retry may help.
    """
    before = row_count(spark, contract)
    spark.conf.set(NAMES_INGESTION, ingestion)
    try:
        _merge(source, contract, newer)
    except jvm.JavaError as error:
        raise explain(error, "the file's rows cannot be merged into the table") from error
    finally:
        spark.conf.unset(NAMES_INGESTION)
    table = iceberg.find_iceberg_table(spark, table_name(contract.table))
    audited_hash = branch.own_commit(opened.at)
    effect = Effect(before, row_count(spark, contract), *merged_rows(table))
    return audited_hash, checked(effect)


def _latest(rows: DataFrame, mode: WriteMode) -> DataFrame:
    """Return the last row of each key."""
    if not mode.latest_by:
        return rows
    of_key = Window.partitionBy(*(F.col(quoted(name)) for name in mode.key))
    last = F.row_number().over(of_key.orderBy(F.col(quoted(mode.latest_by)).desc()))
    return rows.withColumn(_PLACE, last).where(F.col(_PLACE) == 1).drop(_PLACE)


def _merge(source: DataFrame, contract: Contract, newer: str) -> None:
    """Put the rows into the table: a later row with a key replaces the earlier one, or deletes it.

    Spark's temporary views cannot be merged if they read data files by their names, but rows can.
    """
    mode, table = contract.write_mode, table_name(contract.table)
    same = " AND ".join(f"{table}.{quoted(name)} = s.{quoted(name)}" for name in mode.key)
    deletes = F.expr(_deletes(contract))
    merge = source.alias("s").mergeInto(table, F.expr(same))
    merge = (
        merge.whenMatched(F.expr(newer) & deletes).delete().whenMatched(F.expr(newer)).updateAll()
    )
    merge.whenNotMatched(~deletes).insertAll().merge()


def _newer(mode: WriteMode, table: str) -> str:
    """Return the condition that a row may replace the table's; of equal ones the later file's."""
    if not mode.latest_by:
        return "true"
    name = quoted(mode.latest_by)
    return f"({table}.{name} IS NULL OR s.{name} >= {table}.{name})"


def _deletes(contract: Contract) -> str:
    """Return the condition that a row deletes its key."""
    column = contract.write_mode.delete_column
    if not column:
        return "false"
    value = f"CAST({string(contract.write_mode.delete_value)} AS {contract.column(column).type})"
    return f"s.{quoted(column)} <=> {value}"


def merged_rows(table: Any) -> tuple[int, int, int]:
    """Return how many rows a table's newest commit, a MERGE, added, removed and updated."""
    summary = iceberg.summary(table)
    inserted, updated, deleted = (
        int(summary.get(f"{_COUNTED}{what}", 0)) for what in ("inserted", "updated", "deleted")
    )
    return inserted + updated, deleted + updated, updated
