"""The append, watched: what goes into the table is counted in the very pass that writes it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from lakegate.contract.checks import Check
from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.report import READABLE, Tier
from spark_jobs.audit import check_sql, tier_scan
from spark_jobs.audit.main_table import BASE
from spark_jobs.audit.run import Measured, Run
from spark_jobs.audit.tiers import Rows
from spark_jobs.errors import Quoting, explain
from spark_jobs.files.open import BAD_ROW, Source
from spark_jobs.nessie_branch import shared
from spark_jobs.schema.compare import undeclared
from spark_jobs.schema.evolution import growth
from spark_jobs.schema.types import not_null, struct_of
from spark_jobs.spark import iceberg, jvm
from spark_jobs.spark.iceberg import quoted, table_name
from spark_jobs.spark.session import add_catalog

# Rows that are kept out of the table, so that the rest of their file can be published.


def condition(contract: Contract, *, nulled: bool = False) -> str:
    """That a row of the file is kept out, in Spark SQL; "" where none can be.

    Rows with a cell that cannot be read are, unless these cells are to be `nulled`.
    """
    return " OR ".join(reason for _, reason in _reasons(contract, nulled=nulled))


def kept_out(rows: DataFrame, contract: Contract, *, nulled: bool = False) -> DataFrame:
    """The rows that are kept out: `row`, as JSON or as it stands in the file, and `reasons`.

    `reasons` are the ids of the checks that a row breaks.
    """
    reasons_of = _reasons(contract, nulled=nulled)
    named = [f"CASE WHEN {test} THEN {check_sql.string(id_)} END" for id_, test in reasons_of]
    reasons = f"array_compact(array({', '.join(named)}))"
    columns = F.struct(*[F.col(quoted(column.name)) for column in contract.columns])
    row = F.coalesce(F.col(BAD_ROW), F.to_json(columns))
    broken = rows.where(F.expr(condition(contract, nulled=nulled)))
    return broken.select(row.alias("row"), F.expr(reasons).alias("reasons"))


def _reasons(contract: Contract, *, nulled: bool) -> list[tuple[str, str]]:
    """What keeps a row out: the id of the check, and the condition."""
    bad = [] if nulled else [(READABLE, f"{quoted(BAD_ROW)} IS NOT NULL")]
    checks = [check for check in contract.checks if check.quarantine]
    return [*bad, *((check.id, check_sql.counted(check, contract)) for check in checks)]


# The append on the branch: the table as the contract has it, and the file's rows in it.

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


_ROWS, _BAD, _KEPT_OUT = "rows", "bad_rows", "kept_out"
Found = dict[str, Any]


def append_watched(
    spec: JobSpec, branch: Target, source: Source, contract: Contract, opened: Opened
) -> tuple[Run, Rows, dict[str, Measured]]:
    """Append the file's rows, all but those that go into quarantine.

    Returns the run, the file's rows, and the measures that were taken on the way, by check id.
    Raises Permanent when rows are lost between the file, the audit and the table.
    """
    spark = source.rows.sparkSession
    split = _condition(source.rows, contract, nulled=spec.null_unreadable)
    keeping = [check for check in contract.checks if check.quarantine]
    riding = tier_scan.riding(contract)
    first = second = Observation("file")
    rows, of_table = source.rows, list(tier_scan.aggregates(riding, contract))
    if split:
        rows = rows.observe(first, *_counts(split), *tier_scan.aggregates(keeping, contract))
        second = Observation("table")
        rows = rows.where(~F.expr(split)).observe(second, _count(), *of_table)
    else:
        rows = rows.observe(first, *_counts(split), *of_table)
    files, audited_hash = append(rows.drop(BAD_ROW), opened, contract, spec.ingestion, branch)
    found, kept = dict(first.get), dict(second.get)
    read, bad, kept_out = (int(found[name]) for name in (_ROWS, _BAD, _KEPT_OUT))
    counted = Rows(read, bad, kept_out, spec.null_unreadable)
    run = Run(spark, spec, branch.token, contract, opened.table, files, audited_hash)
    _require_all(source, counted, kept[_ROWS], run.written)
    return run, counted, _measured(keeping, found, riding, kept)


def _condition(rows: DataFrame, contract: Contract, *, nulled: bool) -> str:
    split = condition(contract, nulled=nulled)
    for check in filter(lambda check: check.quarantine, contract.checks):
        tier_scan.require_own_sql(rows.sparkSession, check)
    try:
        rows.where(F.expr(split or "true"))
    except jvm.JavaError as error:
        what = "it cannot be told which rows go into quarantine"
        plain, shown = f"{what}: {jvm.refusal(error)}", f"{what}: {jvm.said(error)}"
        raise Quoting("BAD_CONDITION", plain, shown) from error
    return split


def _counts(split: str) -> list[Expression]:
    bad = F.count_if(F.col(BAD_ROW).isNotNull()).alias(_BAD)
    return [_count(), bad, F.count_if(F.expr(split or "false")).alias(_KEPT_OUT)]


def _count() -> Expression:
    return F.count(F.lit(1)).alias(_ROWS)


def _require_all(source: Source, counted: Rows, audited: int, written: int) -> None:
    """That the rows of the file, of the audit and of the table are the same, each counted apart."""
    if not counted.written == audited == written:
        message = f"{counted.written:,} rows were read, {audited:,} audited, {written:,} written"
        raise Permanent("COUNT_MISMATCH", message)
    if source.promised_rows not in (None, counted.read):
        message = f"the file promises {source.promised_rows:,} rows; {counted.read:,} can be read"
        raise Permanent("CORRUPT_FILE", message)


def _measured(
    keeping: Sequence[Check], found: Found, riding: Sequence[Check], kept: Found
) -> dict[str, Measured]:
    of_file = tier_scan.read(keeping, found, int(found[_ROWS]), Tier.APPEND)
    return of_file | tier_scan.read(riding, kept, int(kept[_ROWS]), Tier.APPEND)
