"""Let a file's rows replace those of its table: by their key, or by partitions.

A file of an upsert is first appended, and audited so. Then its branch is reset, and the rows of the
very data files that were audited are merged into main's table, in one commit. The data files of the
append are in no table any more. An overwrite needs no second step: the append itself is one.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column as Expression
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
from spark_jobs.spark.session import add_catalog
from spark_jobs.write.append import INGESTION, Opened, Target

_PLACE = "_corrupt_record"  # a name that no column of a contract has
_BEFORE = "unmerged"  # begins a catalog's name: the branch before its merge
_COUNTED = "spark.merge-into.num-target-rows-"
_OUTCOMES = ("inserted", "updated", "deleted", "copied")
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
    if not _adds_up(effect):
        message = (
            f"of {effect.before:,} rows {effect.removed:,} were removed and {effect.added:,} "
            f"added, but there are {effect.after:,}"
        )
        raise Permanent("COUNT_MISMATCH", message)
    return effect


def _adds_up(effect: Effect) -> bool:
    left = effect.before - effect.removed
    return 0 <= left <= effect.before and left + effect.added == effect.after


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
    source = _latest(run.rows, run.contract.write_mode)
    branch.reset(opened.at)
    return put(run, source, opened, branch, run.spec.ingestion)


def put(
    run: Run,
    source: DataFrame,
    opened: Opened,
    branch: Target,
    ingestion: str,
    *,
    older_too: bool = False,
) -> tuple[str, Effect]:
    """Put rows with different keys into the run's table by their key.

    A row that is older than the table's is left out, unless `older_too`. Returns the commit, which
    names the `ingestion`, and its effect. Raises Permanent if the rows cannot be merged, Transient
    when a retry may help.
    """
    spark, name = run.spark, table_name(run.contract.table)
    how = _Conditions.of(name, run.contract, older_too=older_too)
    before = row_count(spark, run.contract)
    spark.conf.set(NAMES_INGESTION, ingestion)
    try:
        _merge(source, name, how)
    except jvm.JavaError as error:
        raise explain(error, "the file's rows cannot be merged into the table") from error
    finally:
        spark.conf.unset(NAMES_INGESTION)
    summary = iceberg.summary(iceberg.find_iceberg_table(spark, name))
    audited_hash = branch.own_commit(opened.at)
    effect = Effect(before, row_count(spark, run.contract), *merged_rows(summary))
    if not is_exact(effect, summary):
        counts = _counted(run, source, opened.at, older_too=older_too)
        effect = Effect(effect.before, effect.after, *counts)
    return audited_hash, checked(effect)


def _latest(rows: DataFrame, mode: WriteMode) -> DataFrame:
    """Return the last row of each key."""
    if not mode.latest_by:
        return rows
    of_key = Window.partitionBy(*(F.col(quoted(name)) for name in mode.key))
    last = F.row_number().over(of_key.orderBy(F.col(quoted(mode.latest_by)).desc()))
    return rows.withColumn(_PLACE, last).where(F.col(_PLACE) == 1).drop(_PLACE)


@dataclass(frozen=True)
class _Conditions:
    """What a row `s` does to a table's row of the `same` key: conditions on both of them.

    It takes its place if it is `newer`, or removes it if it also `deletes` its key.
    """

    same: Expression
    newer: Expression
    deletes: Expression

    @classmethod
    def of(cls, table: str, contract: Contract, *, older_too: bool) -> "_Conditions":
        """Return it for the table with this name in Spark SQL."""
        mode = contract.write_mode
        same = " AND ".join(f"{table}.{quoted(name)} = s.{quoted(name)}" for name in mode.key)
        newer = "true" if older_too else _newer(mode, table)
        return cls(F.expr(same), F.expr(newer), F.expr(_deletes(contract)))


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


def _merge(source: DataFrame, table: str, how: _Conditions) -> None:
    """Put the rows into the table: a later row with a key replaces the earlier one, or deletes it.

    Spark's temporary views cannot be merged if they read data files by their names, but rows can.
    """
    merge = source.alias("s").mergeInto(table, how.same)
    merge = merge.whenMatched(how.newer & how.deletes).delete().whenMatched(how.newer).updateAll()
    merge.whenNotMatched(~how.deletes).insertAll().merge()


def _counted(run: Run, source: DataFrame, at: str, *, older_too: bool) -> tuple[int, int, int]:
    """Return how many rows a merge into the table at a commit adds, removes and updates.

    It is a query of its own, in which no row counts twice.
    """
    before = f"{_BEFORE}_{at}"  # a session keeps a catalog as it first was
    add_catalog(run.spark, before, run.spec, at, run.token)
    name = table_name(run.contract.table, before)
    how = _Conditions.of(name, run.contract, older_too=older_too)
    rows = source.alias("s").join(run.spark.table(name), how.same, "left")
    is_there = F.expr(f"{name}.{quoted(run.contract.write_mode.key[0])} IS NOT NULL")
    outcomes = (
        ~is_there & ~how.deletes,
        is_there & how.newer & ~how.deletes,
        is_there & how.newer & how.deletes,
    )
    (counts,) = rows.agg(*map(F.count_if, outcomes)).collect()
    inserted, updated, deleted = counts
    return inserted + updated, deleted + updated, updated


def merged_rows(summary: Mapping[str, str]) -> tuple[int, int, int]:
    """Return how many rows a MERGE added, removed and updated, by its snapshot's summary.

    So Spark has counted, which is right for certain only if `is_exact`.
    """
    inserted, updated, deleted, _ = _counts(summary)
    return inserted + updated, deleted + updated, updated


def is_exact(effect: Effect, summary: Mapping[str, str]) -> bool:
    """Return if the effect of a MERGE by `merged_rows` is right for certain.

    Spark counts rows again whose task runs again, as after the loss of an executor. Then it has
    counted more rows than the new data files have, or more deleted ones than are gone.
    """
    inserted, updated, _, copied = _counts(summary)
    return inserted + updated + copied == _written(summary) and _adds_up(effect)


def _counts(summary: Mapping[str, str]) -> tuple[int, ...]:
    """Return how many rows a MERGE inserted, updated, deleted and copied, as Spark has counted."""
    counted = [summary.get(f"{_COUNTED}{each}") for each in _OUTCOMES]
    if not any(counted):  # to Spark a MERGE that only inserts is an append
        return _written(summary), 0, 0, 0
    return tuple(int(each or 0) for each in counted)


def _written(summary: Mapping[str, str]) -> int:
    return int(summary.get("added-records", 0))
