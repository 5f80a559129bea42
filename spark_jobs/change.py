"""One run that changes a table: its statement, made on the branch, and the audit of the whole."""

from pyspark.sql import SparkSession

from lakegate.change import Effect
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.report import AuditReport
from spark_jobs import audit, iceberg, jvm, parsing, whole
from spark_jobs.branch import Branch
from spark_jobs.failures import explain
from spark_jobs.meter import Meter
from spark_jobs.names import table_name
from spark_jobs.quoting import told
from spark_jobs.read import Source
from spark_jobs.reports import report
from spark_jobs.run import Run
from spark_jobs.samples import with_samples
from spark_jobs.session import CATALOG, add_catalog
from spark_jobs.statement import Statement, read_statement
from spark_jobs.storage import Storage
from spark_jobs.whole import Whole

_BEFORE, _AFTER = "main", "audited"  # catalogs; statements may read the first one
_MERGED = "spark.merge-into.num-target-rows-"


def make_change(
    spec: JobSpec, storage: Storage, spark: SparkSession, branch: Branch
) -> AuditReport:
    """Make the change on its branch, and audit the table as it then is.

    The branch stands where it was cut. Raises Permanent when the change cannot be made, Transient
    when a retry may help.
    """
    meter, contract = Meter(spark), storage.contract()
    run = Run(spec=spec, spark=spark, token=branch.token, contract=contract, table=None, files=())
    with meter.step("change"):
        before = _at(run, _BEFORE, spec.base_hash)
        statement = _statement(before, storage)
        updated = _changed(run, statement)
        audited_hash = branch.own_commit(spec.base_hash)  # of two, one may repeat the change
        after = _at(run, _AFTER, audited_hash)
        effect = _effect(after, statement, updated, before.written)
    with meter.step("audit"):
        results = (whole.has_effect(effect), *whole.judge(after, before))
    with meter.step("samples"):
        results = with_samples(results, after, Source(after.rows, (), None))
    verdict, reason = audit.verdict(results)
    return report(
        spec,
        meter,
        contract,
        verdict=verdict,
        reason=reason,
        audited_hash=audited_hash,
        format="sql",
        transform="",
        rows_written=effect.added,
        effect=effect,
        checks=results,
    )


def _at(run: Run, catalog: str, at: str) -> Whole:
    """The table as it is at a hash of the branch, which `catalog` names from then on."""
    add_catalog(run.spark, catalog, run.spec.nessie_uri, run.spec.branch, at, run.token)
    table = iceberg.find_iceberg_table(run.spark, table_name(run.contract.table, catalog))
    if table is None:
        raise Permanent("TABLE_GONE", f"there is no table {run.contract.table} to change")
    return Whole(run.spark, run.spec, run.token, run.contract, table, (), catalog=catalog)


def _statement(before: Whole, storage: Storage) -> Statement:
    there = {name.lower() for name in before.rows.columns}
    columns = before.contract.columns
    if missing := [c.name for c in columns if c.name.lower() not in there]:
        message = f"the contract asks for columns that the table has not: {', '.join(missing)}"
        raise Permanent("TABLE_MISMATCH", message)
    before.spark.catalog.setCurrentCatalog(CATALOG)
    return read_statement(before.spark, storage.change())


def _changed(run: Run, statement: Statement) -> int:
    """Run the statement, once; returns how many rows an UPDATE changes."""
    spark, ingestion = run.spark, run.spec.ingestion
    spark.conf.set("spark.sql.iceberg.snapshot-property.lakegate.ingestion", ingestion)
    try:
        updated = parsing.rows_to_update(spark, statement.plan) if statement.is_update else 0
        spark.sql(statement.text)
    except jvm.JavaError as error:
        otherwise = "BAD_STATEMENT" if jvm.is_refusal(error) else ""
        explained = explain(error, "the statement could not be run", otherwise)
        if explained.code == otherwise:
            message = f"Spark refuses it: {jvm.sentence(error)}"
            raise Permanent(otherwise, message) from error
        raise told(explained, run.contract) from error
    return updated


def _effect(after: Whole, statement: Statement, updated: int, before: int) -> Effect:
    """What became of the rows: Spark itself counts for a MERGE, the table tells of a DELETE."""
    if statement.is_update:
        added = removed = updated
    elif statement.is_merge:
        counted = iceberg.summary(after.table)
        updated = int(counted.get(f"{_MERGED}updated", 0))
        added = int(counted.get(f"{_MERGED}inserted", 0)) + updated
        removed = int(counted.get(f"{_MERGED}deleted", 0)) + updated
    else:
        added, removed = 0, before - after.written
    if before - removed + added != after.written:
        message = f"of {before:,} rows {removed:,} were removed and {added:,} added: not the"
        raise Permanent("COUNT_MISMATCH", f"{message} {after.written:,} there are")
    return Effect(before, after.written, added, removed)
