"""Append a file's rows to the branch, and count them in the pass that writes them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from lakegate.contract.reading.layout import TableLayout
from lakegate.errors import Permanent
from lakegate.job.jobspec import JobSpec
from spark_jobs.audit import tier_scan
from spark_jobs.audit.run import Measured, RowCounts, Run
from spark_jobs.files.source import BAD_ROW, Source
from spark_jobs.lake.nessie_branch import shared
from spark_jobs.schema.compare import undeclared
from spark_jobs.schema.evolution import ColumnChange, column_changes
from spark_jobs.schema.layout import missing, partition_clause, sentences
from spark_jobs.schema.name_mapping import PROPERTY, mapped_names
from spark_jobs.schema.rows import not_null, struct_of
from spark_jobs.spark import iceberg, jvm, table_layout
from spark_jobs.spark.errors import Quoting, explain
from spark_jobs.spark.iceberg import table_name
from spark_jobs.spark.observed import observed
from spark_jobs.spark.session import add_catalog
from spark_jobs.write import provenance
from spark_jobs.write.quarantine import quarantine_condition

_TABLE_PROPERTIES = {
    "format-version": "2",
    "write.distribution-mode": "none",
    "commit.manifest-merge.enabled": "true",  # pyiceberg's default is not to
    "write.metadata.metrics.max-inferred-column-defaults": "1000",
}
# Of exceptions about what a table cannot have, which no retry changes.
_REFUSALS = (
    "java.lang.IllegalArgumentException",
    "java.lang.UnsupportedOperationException",
    "org.apache.iceberg.exceptions.ValidationException",
)
_BEGUN = "begun"  # the catalog of the branch as it began; BASE may be a later commit
INGESTION = "lakegate.ingestion"  # the property of a snapshot that names its ingestion
# Each task writes the rows that it read. A range-distributed write would run its input twice, and
# count every row twice.
_WRITE_OPTIONS = {"distribution-mode": "none", "fanout-enabled": "true"}
# The rows of a partition come to one task, which writes a file after the other.
_PARTITIONED_OPTIONS = {"distribution-mode": "hash", "fanout-enabled": "false"}


class Target(Protocol):
    """The branch that a run writes to, as `nessie_branch.Branch`."""

    @property
    def token(self) -> str:
        """Return the bearer token for Nessie."""

    def head(self) -> str:
        """Return the hash of the branch's newest commit."""

    def own_commit(self, before: str) -> str:
        """Return the branch's head, at most one commit after `before`; raises Transient."""

    def made_commit(self, before: str) -> str:
        """Return the one commit made after `before`; raises Transient without one."""

    def reset(self, to: str) -> None:
        """Reset the branch to the hash `to`."""


@dataclass(frozen=True)
class Opened:
    """The branch's table (`org.apache.iceberg.Table`), ready for the append.

    At the branch's commit `at` the table has main's rows and no others. `changes` describe how its
    columns and its layout were changed. `main_at` is the commit at which main's rows can be read by
    the contract's names: `at` if a column was renamed, else the one at which the branch began.
    """

    table: Any
    at: str
    changes: tuple[str, ...] = ()
    main_at: str = ""


def open_table(spark: SparkSession, spec: JobSpec, branch: Target, contract: Contract) -> Opened:
    """Return the branch's table with the contract's columns and layout; create it if main has none.

    All columns are optional in the table, even if the contract requires a value: a bad row must
    reach the branch, and only the audit decides about it. Columns that the contract adds or widens
    are changed here, on the branch. Raises Permanent TABLE_MISMATCH when the table's columns differ
    in any other way, or Iceberg refuses them, Transient BRANCH_SHARED when another writer changed
    its rows on the branch.
    """
    name = table_name(contract.table)
    with _refusals_explained(contract):
        table = iceberg.find_iceberg_table(spark, name)
        if table is None:
            table = _created(spark, name, contract)
            _change_layout(spark, table, contract)
            return _opened_after_change(spark, spec, branch, table)
        columns = _change_columns(spark, name, table, contract)
        changes = (*(c.sentence for c in columns), *_change_layout(spark, table, contract))
    if changes:
        opened = _opened_after_change(spark, spec, branch, table, changes)
        return replace(opened, main_at=opened.at) if any(c.renames for c in columns) else opened
    if branch.head() != spec.base_hash:
        raise shared(spec.branch)
    return Opened(table, spec.base_hash)


@contextmanager
def _refusals_explained(contract: Contract) -> Iterator[None]:
    """Raise Permanent TABLE_MISMATCH where Iceberg or Spark refuses a table's columns or layout."""
    try:
        yield
    except jvm.JavaError as error:
        what = f"the table {contract.table} does not fit the contract"
        refused = jvm.is_unplanned(error) or jvm.causes(error)[-1].startswith(_REFUSALS)
        raise explain(error, what, "TABLE_MISMATCH" if refused else "") from error


def _created(spark: SparkSession, name: str, contract: Contract) -> Any:
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {name.rpartition('.')[0]}")
    spark.sql(_create_statement(name, contract))
    return iceberg.find_iceberg_table(spark, name)


def _change_columns(
    spark: SparkSession, name: str, table: Any, contract: Contract
) -> list[ColumnChange]:
    """Give a table the contract's columns; return what was changed."""
    schema = iceberg.schema_of(spark, table)
    used = table_layout.sources(table) if contract.former.dropped else ()
    identifiers = sorted(map(str, jvm.items_of(table.schema().identifierFieldNames())))
    mapped = mapped_names(table.properties().get(PROPERTY))
    changes = column_changes(
        name, struct_of(schema), list(not_null(schema)), contract, used, identifiers, mapped
    )
    for change in changes:
        spark.sql(change.statement)
    if changes:
        table.refresh()
    return changes


def _change_layout(spark: SparkSession, table: Any, contract: Contract) -> tuple[str, ...]:
    """Give a table the contract's layout; return what was changed."""
    wanted = contract.layout
    change = missing(table_layout.layout_of(table, wanted.comments), wanted)
    if change != TableLayout():
        table_layout.change_layout(spark, table, change)
    return tuple(sentences(change))


def _opened_after_change(
    spark: SparkSession, spec: JobSpec, branch: Target, table: Any, changes: tuple[str, ...] = ()
) -> Opened:
    """Return the table that this run created or changed, if its rows are still main's."""
    at = branch.head()
    if at != spec.base_hash:
        table.refresh()  # after the branch was read, so that it shows all earlier commits
        _require_rows_of_main(spark, spec, branch, table)
    return Opened(table, at, changes)


def _require_rows_of_main(spark: SparkSession, spec: JobSpec, branch: Target, table: Any) -> None:
    """Raise Transient BRANCH_SHARED unless the table has the snapshot that main has.

    A commit of rows makes a new snapshot; a change of columns keeps it.
    """
    add_catalog(spark, _BEGUN, spec, spec.base_hash, branch.token)
    base = iceberg.find_iceberg_table(spark, table_name(spec.table, _BEGUN))
    if iceberg.snapshot_id(table) != iceberg.snapshot_id(base):
        raise shared(spec.branch)


def with_undeclared(spark: SparkSession, contract: Contract) -> Contract:
    """Return the contract with the columns that files added to its table, if it allows that."""
    name = table_name(contract.table)
    table = iceberg.find_iceberg_table(spark, name) if contract.extra_columns == "add" else None
    if table is None:
        return contract
    declared = {column.name.lower() for column in contract.table_columns}
    with _refusals_explained(contract):
        there = struct_of(iceberg.schema_of(spark, table))
    added = [
        undeclared(name, type_)
        for name, type_ in there.fields
        if name.lower() not in declared and not contract.former.has(name)
    ]
    return replace(contract, columns=(*contract.columns, *added))


def append(
    rows: DataFrame, opened: Opened, contract: Contract, ingestion: str, branch: Target
) -> tuple[tuple[Any, ...], str]:
    """Append `rows` in one commit that names the ingestion, or overwrite their partitions.

    Returns the new data files (`org.apache.iceberg.DataFile`) and the commit's hash. At this commit
    the branch has main's rows and these rows only, in overwritten partitions only these. Raises
    Permanent CORRUPT_FILE when the rows turn out to be unreadable; nothing is committed then.
    Otherwise raises as `_committed`.
    """
    writer = rows.writeTo(table_name(contract.table))
    partitioned = bool(opened.table.spec().isPartitioned())
    options = _PARTITIONED_OPTIONS if partitioned else _WRITE_OPTIONS
    for option, value in options.items():
        writer = writer.option(option, value)
    try:
        writer = writer.option(f"snapshot-property.{INGESTION}", ingestion)
        writer.overwritePartitions() if contract.write_mode.overwrites else writer.append()
    except jvm.JavaError as error:
        raise explain(error, "the file's rows cannot be read") from error
    opened.table.refresh()
    return _committed(opened, branch)


def _committed(opened: Opened, branch: Target) -> tuple[tuple[Any, ...], str]:
    """Return the data files that the run's commit added, and the commit's hash.

    The table must show the commit: the branch is read last, so nothing can have come before it.
    Raises Transient when another writer committed on the branch, Permanent COUNT_MISMATCH when the
    commit and its manifests differ.
    """
    audited_hash = branch.own_commit(opened.at)
    if audited_hash == opened.at:  # Iceberg commits no overwrite without a row
        return (), audited_hash
    files = tuple(iceberg.added_files(opened.table))
    added = int(iceberg.summary(opened.table).get("added-records", 0))
    held = sum(file.recordCount() for file in files)
    if held != added:
        message = f"{added:,} rows were written, but the new data files hold {held:,}"
        raise Permanent("COUNT_MISMATCH", message)
    return files, audited_hash


def _create_statement(name: str, contract: Contract) -> str:
    columns = ", ".join(f"{quoted(c.name)} {c.type}" for c in contract.table_columns)
    properties = ", ".join(f"'{k}'='{v}'" for k, v in _TABLE_PROPERTIES.items())
    partitions = partition_clause(contract.layout)
    return f"CREATE TABLE {name} ({columns}) USING iceberg{partitions} TBLPROPERTIES ({properties})"


_ROWS, _BAD, _QUARANTINED, _LAST = "rows", "bad_rows", "quarantined", "last_number"


def append_counted(
    spec: JobSpec, branch: Target, source: Source, contract: Contract, opened: Opened
) -> tuple[Run, RowCounts, dict[str, Measured]]:
    """Append the file's rows except those to quarantine, and count what was read meanwhile.

    Returns the run, the file's row counts, and the measures of the checks that quarantine rows, by
    id. Raises Permanent when rows are lost between the file and the table.
    """
    spark, counts = source.rows.sparkSession, Observation("file")
    split = _checked_condition(source.rows, contract, nulled=spec.null_unreadable)
    quarantining = [check for check in contract.checks if check.quarantine]
    rows = provenance.one_file_rows(source.rows, contract.provenance, spec)
    measures = (
        *_counts(split),
        provenance.last_number(contract.provenance).alias(_LAST),
        *tier_scan.aggregates(quarantining, contract),
    )
    kept = rows.observe(counts, *measures)
    kept = (kept.where(~F.expr(split)) if split else kept).drop(BAD_ROW)
    files, audited_hash = append(kept, opened, contract, spec.ingestion, branch)
    run = Run(
        spark, spec, branch.token, contract, opened.table, files, audited_hash, opened.main_at
    )
    found = counts.get
    if not _agrees(found, source, run.written):
        found = observed(rows, *measures)
    read, bad, quarantined = (int(found[name]) for name in (_ROWS, _BAD, _QUARANTINED))
    provenance.require_each_number(contract.provenance, read, found[_LAST])
    counted = RowCounts(read, bad, quarantined, spec.null_unreadable)
    _require_all_rows(source, counted, run.written)
    return run, counted, tier_scan.read(quarantining, found, read)


def _agrees(found: Mapping[str, Any], source: Source, written: int) -> bool:
    """Return whether the rows that were read are those written, and those that the file declares.

    Before the rows of a partition come to one task, Spark counts those again that an executor took
    with it when it was lost.
    """
    kept = found[_ROWS] - found[_QUARANTINED]
    return kept == written and source.declared_rows in (None, found[_ROWS])


def _checked_condition(rows: DataFrame, contract: Contract, *, nulled: bool) -> str:
    split = quarantine_condition(contract, nulled=nulled)
    for check in filter(lambda check: check.quarantine, contract.checks):
        tier_scan.check_own_sql(rows.sparkSession, check)
    try:
        rows.where(F.expr(split or "true"))
    except jvm.JavaError as error:
        what = "the rows to quarantine cannot be determined"
        plain, shown = f"{what}: {jvm.error_condition(error)}", f"{what}: {jvm.root_message(error)}"
        raise Quoting("BAD_CONDITION", plain, shown) from error
    return split


def _counts(split: str) -> list[Expression]:
    bad = F.count_if(F.col(BAD_ROW).isNotNull()).alias(_BAD)
    every = F.count(F.lit(1)).alias(_ROWS)
    return [every, bad, F.count_if(F.expr(split or "false")).alias(_QUARANTINED)]


def _require_all_rows(source: Source, counted: RowCounts, written: int) -> None:
    """Raise Permanent unless the file and the table have the same number of rows."""
    if counted.written != written:
        message = f"{counted.written:,} rows were read, but {written:,} written"
        raise Permanent("COUNT_MISMATCH", message)
    source.require_declared(counted.read)
