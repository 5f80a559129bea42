"""The append on the branch: the table as the contract has it, and the file's rows in it."""

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from lakegate.contract import Contract
from lakegate.errors import Permanent, Transient
from spark_jobs.failures import explain
from spark_jobs.jvm import iceberg_table
from spark_jobs.session import CATALOG

_TABLE_PROPERTIES = {
    "format-version": "2",
    "write.distribution-mode": "none",
    "write.metadata.metrics.max-inferred-column-defaults": "1000",
}
# A range-distributed write would run its input twice, and the audit would count every row twice.
_WRITE_OPTIONS = {"distribution-mode": "none", "fanout-enabled": "true"}


@dataclass(frozen=True)
class Appended:
    """What one append added: rows, and the addresses of the new data files."""

    rows: int
    data_files: tuple[str, ...]


NOTHING = Appended(0, ())


def prepare_table(spark: SparkSession, contract: Contract) -> None:
    """Make sure that the branch has the contract's table, with the contract's columns.

    Columns are optional in the table even where the contract requires a value: a bad row must
    reach the branch to be evidence, and only the audit decides. Raises Permanent TABLE_MISMATCH.
    """
    name = table_name(contract.table)
    if not spark.catalog.tableExists(name):
        namespace = name.rpartition(".")[0]
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
        spark.sql(_create_statement(name, contract))
        return
    there = {f.name: f.dataType.simpleString() for f in spark.table(name).schema}
    wanted = {column.name: column.type for column in contract.columns}
    if there != wanted:
        differing = sorted(there.items() ^ wanted.items())
        message = f"the table's columns are not the contract's; they differ in {differing}"
        raise Permanent("TABLE_MISMATCH", message)


def append(spark: SparkSession, rows: DataFrame, contract: Contract, ingestion: str) -> Appended:
    """Append `rows` to the branch's table in one commit that names the ingestion.

    Raises Permanent CORRUPT_FILE when the rows turn out to be unreadable; nothing is then
    committed. Raises Transient when another writer committed on this branch meanwhile.
    """
    name = table_name(contract.table)
    before = _records(_snapshot(spark, name), "total-records")
    writer = rows.writeTo(name).option("snapshot-property.lakegate.ingestion", ingestion)
    for option, value in _WRITE_OPTIONS.items():
        writer = writer.option(option, value)
    try:
        writer.append()
    except Py4JJavaError as error:
        raise explain(error, "the file's rows cannot be read") from error
    snapshot = _snapshot(spark, name)
    added = _records(snapshot, "added-records")
    if _records(snapshot, "total-records") != before + added:
        raise Transient("BRANCH_SHARED", f"another run writes on the branch of {ingestion}")
    return Appended(added, _data_files(spark, name, snapshot))


def table_name(table: str) -> str:
    """The table's name in Spark SQL, in the catalog of the run's branch."""
    return ".".join(quoted(part) for part in (CATALOG, *table.split(".")))


def quoted(name: str) -> str:
    """A name as Spark SQL reads it, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def _create_statement(name: str, contract: Contract) -> str:
    columns = ", ".join(f"{quoted(c.name)} {c.type}" for c in contract.columns)
    properties = ", ".join(f"'{k}'='{v}'" for k, v in _TABLE_PROPERTIES.items())
    return f"CREATE TABLE {name} ({columns}) USING iceberg TBLPROPERTIES ({properties})"


def _snapshot(spark: SparkSession, name: str) -> Any:
    return iceberg_table(spark, name).currentSnapshot()


def _records(snapshot: Any, field: str) -> int:
    return int(snapshot.summary().getOrDefault(field, "0")) if snapshot else 0


def _data_files(spark: SparkSession, name: str, snapshot: Any) -> tuple[str, ...]:
    files = snapshot.addedDataFiles(iceberg_table(spark, name).io())
    return tuple(file.location() for file in files)
