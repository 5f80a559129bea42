"""The append on the branch: the table as the contract has it, and the file's rows in it."""

from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakegate.contract import Contract
from lakegate.errors import Permanent, Transient
from spark_jobs import iceberg, jvm
from spark_jobs.conform import not_null, struct_of
from spark_jobs.evolution import growth
from spark_jobs.failures import explain
from spark_jobs.names import quoted, table_name
from spark_jobs.schema import undeclared

_TABLE_PROPERTIES = {
    "format-version": "2",
    "write.distribution-mode": "none",
    "commit.manifest-merge.enabled": "true",  # pyiceberg's default is not to
    "write.metadata.metrics.max-inferred-column-defaults": "1000",
}
# A range-distributed write would run its input twice, and the audit would count every row twice.
_WRITE_OPTIONS = {"distribution-mode": "none", "fanout-enabled": "true"}


@dataclass(frozen=True)
class Opened:
    """The branch's table (`org.apache.iceberg.Table`), and how its columns were changed."""

    table: Any
    changes: tuple[str, ...] = ()


def open_table(spark: SparkSession, contract: Contract) -> Opened:
    """The branch's table, created if main had none, with the contract's columns.

    Columns are optional in the table even where the contract requires a value: a bad row must
    reach the branch to be evidence, and only the audit decides. What the contract's newer version
    adds or widens is added or widened here, on the branch. Raises Permanent TABLE_MISMATCH when
    the table's columns differ in any other way.
    """
    name = table_name(contract.table)
    table = iceberg.find_iceberg_table(spark, name)
    if table is None:
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {name.rpartition('.')[0]}")
        spark.sql(_create_statement(name, contract))
        return Opened(iceberg.find_iceberg_table(spark, name))
    schema = iceberg.schema_of(spark, table)
    changes = growth(name, struct_of(schema), list(not_null(schema)), contract)
    for change in changes:
        spark.sql(change.statement)
    if changes:
        table.refresh()
    return Opened(table, tuple(change.told for change in changes))


def with_undeclared(spark: SparkSession, contract: Contract) -> Contract:
    """The contract with the columns that files have added to its table, where it lets them."""
    name = table_name(contract.table)
    table = iceberg.find_iceberg_table(spark, name) if contract.extra_columns == "add" else None
    if table is None:
        return contract
    declared = {column.name.lower() for column in contract.columns}
    added = [
        undeclared(name, type_)
        for name, type_ in struct_of(iceberg.schema_of(spark, table)).fields
        if name.lower() not in declared
    ]
    return replace(contract, columns=(*contract.columns, *added))


def append(rows: DataFrame, table: Any, contract: Contract, ingestion: str) -> list[Any]:
    """Append `rows` in one commit that names the ingestion.

    Returns the data files that hold them (`org.apache.iceberg.DataFile`).
    `table` is the one that `open_table` opened. Raises Permanent CORRUPT_FILE when the rows turn
    out to be unreadable; nothing is then committed. Raises Transient when another writer
    committed on this branch meanwhile, Permanent COUNT_MISMATCH when the commit and its manifests
    differ.
    """
    before = _records(table, "total-records")
    writer = rows.writeTo(table_name(contract.table))
    for option, value in _WRITE_OPTIONS.items():
        writer = writer.option(option, value)
    try:
        writer.option("snapshot-property.lakegate.ingestion", ingestion).append()
    except jvm.JavaError as error:
        raise explain(error, "the file's rows cannot be read") from error
    table.refresh()
    added = _records(table, "added-records")
    if _records(table, "total-records") != before + added:
        raise Transient("BRANCH_SHARED", f"another run writes on the branch of {ingestion}")
    files = iceberg.added_files(table)
    held = sum(file.recordCount() for file in files)
    if held != added:
        message = f"{added:,} rows were written, but the new data files hold {held:,}"
        raise Permanent("COUNT_MISMATCH", message)
    return files


def _create_statement(name: str, contract: Contract) -> str:
    columns = ", ".join(f"{quoted(c.name)} {c.type}" for c in contract.columns)
    properties = ", ".join(f"'{k}'='{v}'" for k, v in _TABLE_PROPERTIES.items())
    return f"CREATE TABLE {name} ({columns}) USING iceberg TBLPROPERTIES ({properties})"


def _records(table: Any, field: str) -> int:
    snapshot = table.currentSnapshot()
    return int(snapshot.summary().getOrDefault(field, "0")) if snapshot else 0
