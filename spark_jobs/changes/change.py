"""Run a change: execute its statement on the branch, and audit the whole table."""

from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from lakegate.audit.report import AuditReport
from lakegate.errors import Permanent, Transient
from lakegate.job.change import Effect
from lakegate.job.jobspec import JobSpec
from spark_jobs.audit import verdict
from spark_jobs.audit.run import Run
from spark_jobs.audit.samples import with_samples
from spark_jobs.changes.exchange import Exchange
from spark_jobs.changes.retract import Removal, removal_of, statement_for
from spark_jobs.changes.statement import Statement, read_statement
from spark_jobs.changes.whole_table import WholeTable, has_effect, judge
from spark_jobs.files.source import Source
from spark_jobs.lake.nessie_branch import Branch
from spark_jobs.lake.storage import Storage
from spark_jobs.spark import iceberg, jvm, sql_parser
from spark_jobs.spark.errors import explain, masked
from spark_jobs.spark.iceberg import table_name
from spark_jobs.spark.session import CATALOG, add_catalog
from spark_jobs.spark.stall import cancel_when_stalled
from spark_jobs.spark.step_metrics import Meter
from spark_jobs.write import replacing
from spark_jobs.write.report import report

# Catalogs; statements may read the first one.
_BEFORE, _AFTER, _RESTORED = "main", "audited", "restored"
_BEGUN, _ENDED = "begun", "ended"  # of another writer's branch


def make_change(
    spec: JobSpec, storage: Storage, spark: SparkSession, branch: Branch
) -> AuditReport:
    """Execute the change on its branch, and audit the table after it.

    The branch has no commit of its own yet. Raises Permanent when the statement cannot be executed,
    Transient when a retry may help.
    """
    meter, contract = Meter(spark), storage.contract().of_table
    run = Run(spec=spec, spark=spark, token=branch.token, contract=contract, table=None, files=())
    with meter.step("change"):
        before = _table_at(run, _BEFORE, spec.base_hash)
        statement = _statement(before, storage)
        moved = _changed(before, statement, branch)
        audited_hash = branch.own_commit(spec.base_hash)  # of two, one may repeat the change
        after = _table_at(run, _AFTER, audited_hash)
        effect = _effect(after, statement, moved, before.written)
    with meter.step("audit"):
        results = (has_effect(effect), *judge(after, before))
    with meter.step("samples"):
        results = with_samples(results, after, Source(after.rows, (), None))
    outcome, reason = verdict.verdict(results, contract)
    return report(
        spec,
        meter,
        contract,
        verdict=outcome,
        reason=reason,
        audited_hash=audited_hash,
        format="sql",
        transform="",
        rows_written=effect.added,
        effect=effect,
        checks=results,
    )


def _table_at(run: Run, catalog: str, at: str) -> WholeTable:
    """Return the table at a commit of the branch, and call its catalog `catalog`."""
    add_catalog(run.spark, catalog, run.spec, at, run.token)
    table = iceberg.find_iceberg_table(run.spark, table_name(run.contract.table, catalog))
    if table is None:
        raise Permanent("TABLE_GONE", f"there is no table {run.contract.table} to change")
    return WholeTable(run.spark, run.spec, run.token, run.contract, table, (), catalog=catalog)


def _statement(before: WholeTable, storage: Storage) -> Statement | Removal | Exchange:
    there = {name.lower() for name in before.rows.columns}
    columns = before.contract.columns
    if missing := [c.name for c in columns if c.name.lower() not in there]:
        message = f"the table lacks columns of the contract: {', '.join(missing)}"
        raise Permanent("TABLE_MISMATCH", message)
    before.spark.catalog.setCurrentCatalog(CATALOG)
    change = storage.change()
    if change.restores:
        return Exchange.restoring(_table_at(before, _RESTORED, change.restores).table, before.table)
    if taken := change.takeover:
        begun, ended = _table_at(before, _BEGUN, taken.since), _table_at(before, _ENDED, taken.head)
        return Exchange.taking_over(before.spark, begun.table, ended.table, before.table)
    if not change.retracts:
        return read_statement(before.spark, change)
    if sql := statement_for(change, before.contract, before.rows):
        return read_statement(before.spark, replace(change, statement=sql))
    return removal_of(change, storage.report(before.spec.earlier_report))


def _changed(
    run: Run, statement: Statement | Removal | Exchange, branch: Branch
) -> tuple[int, int] | None:
    """Execute the statement once; return how many rows an UPDATE or an exchange moves.

    These are the rows added and removed; None where the table tells it.
    """
    spark, ingestion = run.spark, run.spec.ingestion
    moved: tuple[int, int] | None = None
    spark.conf.set(replacing.NAMES_INGESTION, ingestion)
    try:
        if isinstance(statement, Statement):
            if statement.is_update:
                moved = (sql_parser.rows_to_update(spark, statement.plan),) * 2
            spark.sql(statement.text)
        elif isinstance(statement, Exchange):
            with cancel_when_stalled(spark, run.spec.limits.longest_stall):  # by others' files
                moved = statement.moved(spark, _writable(run))
                statement.execute(spark, branch, run.spec)
        else:
            statement.execute(spark, _writable(run), ingestion)
    except jvm.JavaError as error:
        otherwise = "BAD_STATEMENT" if jvm.is_refusal(error) else ""
        explained = explain(error, "the statement could not be executed", otherwise)
        if explained.code == otherwise:
            message = f"Spark refuses the statement: {jvm.short_message(error)}"
            raise Permanent(otherwise, message) from error
        raise masked(explained, run.contract) from error
    return moved


def _writable(run: Run) -> Any:
    """Return the branch's table; the one before the change is pinned to a commit."""
    return iceberg.find_iceberg_table(run.spark, table_name(run.contract.table))


def _effect(
    after: WholeTable,
    statement: Statement | Removal | Exchange,
    moved: tuple[int, int] | None,
    before: int,
) -> Effect:
    """Return how many rows were added and removed, `moved` if that is known.

    For a MERGE Spark counts them. Raises Permanent COUNT_MISMATCH, Transient COUNTED_TWICE.
    """
    if isinstance(statement, Statement) and statement.is_merge:
        summary = iceberg.summary(after.table)
        added, removed, _ = replacing.merged_rows(summary)
        effect = Effect(before, after.written, added, removed)
        if not replacing.is_exact(effect, summary):
            message = "Spark counted rows of the MERGE twice, so it is run again"
            raise Transient("COUNTED_TWICE", message)
        return effect
    added, removed = moved or (0, before - after.written)
    return replacing.checked(Effect(before, after.written, added, removed))
