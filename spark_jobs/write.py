"""The append on the branch: the table as the contract has it, and the file's rows in it."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from lakegate.contract import Contract
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from spark_jobs import iceberg, jvm
from spark_jobs.beyond import BASE
from spark_jobs.branch import shared
from spark_jobs.conform import not_null, struct_of
from spark_jobs.evolution import growth
from spark_jobs.failures import explain
from spark_jobs.names import quoted, table_name
from spark_jobs.schema import undeclared
from spark_jobs.session import add_catalog

_TABLE_PROPERTIES = {
    "format-version": "2",
    "write.distribution-mode": "none",
    "commit.manifest-merge.enabled": "true",  # pyiceberg's default is not to
    "write.metadata.metrics.max-inferred-column-defaults": "1000",
}
# A range-distributed write would run its input twice, and the audit would count every row twice.
_WRITE_OPTIONS = {"distribution-mode": "none", "fanout-enabled": "true"}


class Target(Protocol):
    """The branch that a run writes to; as `branch.Branch`."""

    @property
    def token(self) -> str:
        """Return the bearer token for Nessie."""

    def head(self) -> str:
        """Return the hash that the branch stands at."""

    def own_commit(self, before: str) -> str:
        """Return the branch's head, at most one commit after `before`; raises Transient."""


@dataclass(frozen=True)
class Opened:
    """The branch's table (`org.apache.iceberg.Table`), ready for the append.

    The branch stands at the hash `at`, where the table has main's rows and no others. `changes`
    say how its columns were changed.
    """

    table: Any
    at: str
    changes: tuple[str, ...] = ()


def open_table(spark: SparkSession, spec: JobSpec, branch: Target, contract: Contract) -> Opened:
    """Return the branch's table, created if main had none, with the contract's columns.

    Columns are optional in the table even where the contract requires a value: a bad row must
    reach the branch to be evidence, and only the audit decides. What the contract's newer version
    adds or widens is added or widened here, on the branch. Raises Permanent TABLE_MISMATCH when
    the table's columns differ in any other way, Transient BRANCH_SHARED when somebody changed its
    rows on the branch.
    """
    name = table_name(contract.table)
    table = iceberg.find_iceberg_table(spark, name)
    if table is None:
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {name.rpartition('.')[0]}")
        spark.sql(_create_statement(name, contract))
        return _altered(spark, spec, branch, iceberg.find_iceberg_table(spark, name))
    schema = iceberg.schema_of(spark, table)
    changes = growth(name, struct_of(schema), list(not_null(schema)), contract)
    for change in changes:
        spark.sql(change.statement)
    if changes:
        return _altered(spark, spec, branch, table, tuple(change.told for change in changes))
    if branch.head() != spec.base_hash:
        raise shared(spec.branch)
    return Opened(table, spec.base_hash)


def _altered(
    spark: SparkSession, spec: JobSpec, branch: Target, table: Any, changes: tuple[str, ...] = ()
) -> Opened:
    """Return the table that this run made or altered, if its rows are still main's."""
    at = branch.head()
    if at != spec.base_hash:
        table.refresh()  # after the look at the branch, so that it shows all that came before
        _require_rows_of_main(spark, spec, branch, table)
    return Opened(table, at, changes)


def _require_rows_of_main(spark: SparkSession, spec: JobSpec, branch: Target, table: Any) -> None:
    """Raise Transient BRANCH_SHARED unless the table's snapshot is that of main at the base.

    Every commit of rows makes a new snapshot; one of columns alone keeps it.
    """
    add_catalog(spark, BASE, spec.nessie_uri, spec.branch, spec.base_hash, branch.token)
    base = iceberg.find_iceberg_table(spark, table_name(spec.table, BASE))
    if iceberg.snapshot_id(table) != iceberg.snapshot_id(base):
        raise shared(spec.branch)


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


def append(
    rows: DataFrame, opened: Opened, contract: Contract, ingestion: str, branch: Target
) -> tuple[tuple[Any, ...], str]:
    """Append `rows` in one commit that names the ingestion.

    Returns the data files that hold them (`org.apache.iceberg.DataFile`), and the commit's hash:
    there the branch has main's rows and these, and no others. Raises Permanent CORRUPT_FILE when
    the rows turn out to be unreadable; nothing is then committed. Raises Transient when another
    writer committed on this branch meanwhile, Permanent COUNT_MISMATCH when the commit and its
    manifests differ.
    """
    writer = rows.writeTo(table_name(contract.table))
    for option, value in _WRITE_OPTIONS.items():
        writer = writer.option(option, value)
    try:
        writer.option("snapshot-property.lakegate.ingestion", ingestion).append()
    except jvm.JavaError as error:
        raise explain(error, "the file's rows cannot be read") from error
    opened.table.refresh()
    audited_hash = branch.own_commit(opened.at)  # last: nothing can have come before the refresh
    files = tuple(iceberg.added_files(opened.table))
    added = int(iceberg.summary(opened.table).get("added-records", 0))
    held = sum(file.recordCount() for file in files)
    if held != added:
        message = f"{added:,} rows were written, but the new data files hold {held:,}"
        raise Permanent("COUNT_MISMATCH", message)
    return files, audited_hash


def _create_statement(name: str, contract: Contract) -> str:
    columns = ", ".join(f"{quoted(c.name)} {c.type}" for c in contract.columns)
    properties = ", ".join(f"'{k}'='{v}'" for k, v in _TABLE_PROPERTIES.items())
    return f"CREATE TABLE {name} ({columns}) USING iceberg TBLPROPERTIES ({properties})"
