"""Write a table's small data files again as few large ones, on a branch, and compare the rows."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from lakegate.audit_tables import PUBLISHED, TABLES
from lakegate.contract.columns import quoted
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.upkeep import FEWEST, Compaction, Fingerprint
from spark_jobs.attempt import OpenSession
from spark_jobs.errors import explain
from spark_jobs.nessie_branch import Branch
from spark_jobs.spark import iceberg
from spark_jobs.spark.iceberg import table_name
from spark_jobs.spark.jvm import JavaError, java, java_class, java_session
from spark_jobs.spark.session import CATALOG, add_catalog, require_rest_catalog
from spark_jobs.storage import Storage

_BEFORE, _AFTER = "before", "after"  # catalogs of the table's two states
_HISTORY = {table.name for table in TABLES}
# Spark hashes the values of these types; others are hashed as JSON.
_HASHED = (
    *(NumericType, StringType, BinaryType, BooleanType),
    *(DateType, TimestampType, TimestampNTZType),
)


def compact(spec: JobSpec, storage: Storage, token: str, open_session: OpenSession) -> Compaction:
    """Compact the table on the spec's branch; put the report and return it.

    Raises Permanent where the table is gone or cannot be rewritten, Transient when another writer
    commits on the branch.
    """
    branch = Branch(spec.nessie_uri, spec.branch, token)
    branch.reset(spec.base_hash)
    spark = open_session(spec, token)
    require_rest_catalog(spark, CATALOG)
    _rewrite(spark, _table(spark, spec.table, CATALOG), spec.table)
    audited_hash = branch.own_commit(spec.base_hash)
    add_catalog(spark, _BEFORE, spec.nessie_uri, spec.branch, spec.base_hash, token)
    add_catalog(spark, _AFTER, spec.nessie_uri, spec.branch, audited_hash, token)
    old, new = (_table(spark, spec.table, catalog) for catalog in (_BEFORE, _AFTER))
    before, after = _compared(spark, old, new)
    report = Compaction(spec.table, spec.branch, spec.base_hash, audited_hash, before, after)
    storage.put(spec.report_key, report.to_json().encode())
    return report


def _table(spark: SparkSession, name: str, catalog: str) -> Any:
    table = iceberg.find_iceberg_table(spark, table_name(name, catalog))
    if table is None:
        raise Permanent("TABLE_GONE", f"there is no table {name} to compact")
    return table


def _rewrite(spark: SparkSession, table: Any, name: str) -> None:
    """Have Iceberg rewrite small data files, in the table's order if it has one, by one commit."""
    actions = java_class(spark, "org.apache.iceberg.spark.actions.SparkActions")
    action = actions.get(java_session(spark)).rewriteDataFiles(table)
    action = action.option("min-input-files", str(FEWEST))
    if name in _HISTORY:  # entries of what is not published may still move to another partition
        equal = java(spark).org.apache.iceberg.expressions.Expressions.equal
        action = action.filter(equal(PUBLISHED, True))
    try:
        (action.binPack() if table.sortOrder().isUnsorted() else action.sort()).execute()
    except JavaError as error:
        raise explain(error, "the data files cannot be rewritten") from error


def _compared(spark: SparkSession, old: Any, new: Any) -> tuple[Fingerprint, Fingerprint]:
    """Return the fingerprints of the data files by which two states of a table differ.

    If rows were deleted without rewriting data files, they are of all rows.
    """
    before, after = (iceberg.planned_scans(table) for table in (old, new))
    if not (iceberg.has_deletes(old) or iceberg.has_deletes(new)):
        had, has = ({scan.file().location() for scan in scans} for scans in (before, after))
        before = [scan for scan in before if scan.file().location() not in has]
        after = [scan for scan in after if scan.file().location() not in had]
    return _fingerprint(spark, old, before), _fingerprint(spark, new, after)


def _fingerprint(spark: SparkSession, table: Any, scans: Sequence[Any]) -> Fingerprint:
    if not scans:
        return Fingerprint(0, "0")
    return fingerprint(iceberg.rows_in(spark, table, scans))


def fingerprint(rows: DataFrame) -> Fingerprint:
    """Return the number of rows and the sum of their hashes.

    A null is hashed as such: Spark's own hash of a row leaves nulls out, so that two rows with the
    same values in other columns would be alike.
    """
    parts = [part for field in rows.schema for part in _hashed(field.name, field.dataType)]
    hashes = F.xxhash64(*parts).cast("decimal(38,0)")
    rows_, total = rows.agg(F.count("*"), F.sum(hashes)).collect()[0]
    return Fingerprint(rows_, str(total or 0))


def _hashed(name: str, type_: DataType) -> tuple[Column, Column]:
    column = F.col(quoted(name))
    if isinstance(type_, _HASHED):
        return column, column.isNull()
    return F.to_json(F.struct(column), {"ignoreNullFields": "false"}), column.isNull()
