"""Run a change: execute its statement on the branch, and audit the whole table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakegate.change import Effect
from lakegate.contract.checks import OF_ROWS, Check, Metric, Scope, Severity
from lakegate.contract.expectations import Unit
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.report import AuditReport, CheckResult, Status, Tier
from spark_jobs.audit import tiers, verdict
from spark_jobs.audit.run import Measured, Run
from spark_jobs.audit.samples import with_samples
from spark_jobs.changes.exchange import Exchange
from spark_jobs.changes.retract import Removal, removal_of, statement_for
from spark_jobs.changes.statement import Statement, read_statement
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

# Audit a whole table after a change, by scans and keyed jobs.
#
# Checks that a contract makes of a file's rows are made of all rows of the table. Checks that add
# up a file's rows, or concern its delivery, are skipped, and the report says so.

_ABOUT_ONE_FILE: Mapping[str, str] = {
    "rowCount": "it counts the rows of one file",
    "distinctCount": "it counts the keys of one file",
    "encoding": "it is about how a file was decoded",
    "freshness": "it is about how fresh a file is",
    "drift": "it compares a file with earlier ones",
    "sum": "it adds up the rows of one file",
    "stddev": "it measures the spread of one file's rows",
    "reconcile": "it compares a file with its control file",
    "sql": "its query is about one file: it lacks the scope table",
}


@dataclass(frozen=True)
class WholeTable(Run):
    """A run whose rows are all rows of its table in a catalog of the session."""

    catalog: str = ""

    @cached_property
    def rows(self) -> DataFrame:
        """Return all rows of the table."""
        return self.spark.table(table_name(self.contract.table, self.catalog))

    @cached_property
    def written(self) -> int:
        """Return the number of rows of the table."""
        return self.rows.count()


def has_effect(effect: Effect) -> CheckResult:
    """Return the result of the check that a change affects at least one row."""
    touched = effect.added + effect.removed
    return CheckResult(
        id="change.has_effect",
        metric="change",
        columns=(),
        severity=Severity.ERROR.value,
        status=Status.PASS if touched else Status.FAIL,
        expected="at least 1 row changed",
        found=effect.wording,
        tier=Tier.SCAN.value,
    )


def judge(after: WholeTable, before: WholeTable) -> tuple[CheckResult, ...]:
    """Return the result of each check of the contract over all rows `after` the change.

    Raises Permanent NOTHING_CHECKED when every check was skipped.
    """
    checks = after.contract.checks
    measured = _measured(after, checks)
    if all(each.skipped for each in measured.values()):
        message = "the contract has no check that applies to a whole table, so nothing was audited"
        raise Permanent("NOTHING_CHECKED", message)
    results = [
        verdict.result(_without_quarantine(c), measured[c.id], after.contract) for c in checks
    ]
    blamed = [
        check
        for check, found in zip(checks, results, strict=True)
        if found.status is Status.FAIL and _allows_some_in_each_file(check)
    ]
    before_change = _measured(before, blamed)
    return tuple(
        _unless_as_before(found, measured[found.id], before_change[found.id])
        if found.id in before_change
        else found
        for found in results
    )


def _measured(run: WholeTable, checks: Sequence[Check]) -> dict[str, Measured]:
    """Return the measure of each check over all rows of the table, by its id."""
    why = {check.id: _skip_reason(check) for check in checks}
    asked = [_as_file_check(check) for check in checks if not why[check.id]]
    found = _measured_as_file(run, asked) if asked else {}
    for check in checks:
        if check.id not in found:
            reason = f"not evaluated on a whole table: {why[check.id] or 'it is about one file'}"
            found[check.id] = Measured(None, 0, Tier.SCAN, skipped=reason)
    return found


def _measured_as_file(run: WholeTable, checks: Sequence[Check]) -> dict[str, Measured]:
    """Return the measures over all data files, as if this run had added them."""
    files = tuple(iceberg.gained_files(run.spark, run.table, None))
    own = replace(run, contract=replace(run.contract, checks=tuple(checks)), files=files)
    with cancel_when_stalled(run.spark, run.spec.limits.longest_stall):
        return tiers.measure(own, {})


def _skip_reason(check: Check) -> str:
    if check.scope is Scope.TABLE:
        return ""
    if check.scope is Scope.FILE:
        return _ABOUT_ONE_FILE.get(check.metric, "")
    return "it is about the days before a file"


def _as_file_check(check: Check) -> Check:
    """Return the check with the scope of the run's rows, which are the whole table's."""
    return replace(_without_quarantine(check), scope=Scope.FILE)


def _without_quarantine(check: Check) -> Check:
    """Return the check without quarantine: rows that are in the table cannot be quarantined."""
    return replace(check, quarantine=False)


def _allows_some_in_each_file(check: Check) -> bool:
    """Return if a table of good files may break it: keys repeat, or counts add up."""
    if check.scope is Scope.TABLE:
        return False
    adds_up = check.metric in OF_ROWS and check.expect.unit is Unit.ROWS
    return check.metric is Metric.DUPLICATE or (adds_up and check.expect.met(1, 1))


def _unless_as_before(found: CheckResult, now: Measured, before_change: Measured) -> CheckResult:
    """Return a warning where the table had as many before: the change did not cause them."""
    if now.value is None or before_change.value is None or before_change.value < now.value:
        return found
    note = f"{found.message}; before the change it was {before_change.value:,}"
    return replace(found, status=Status.WARN, message=note)


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
        before = _at(run, _BEFORE, spec.base_hash)
        statement = _statement(before, storage)
        moved = _changed(before, statement, branch)
        audited_hash = branch.own_commit(spec.base_hash)  # of two, one may repeat the change
        after = _at(run, _AFTER, audited_hash)
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


def _at(run: Run, catalog: str, at: str) -> WholeTable:
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
        return Exchange.restoring(_at(before, _RESTORED, change.restores).table, before.table)
    if taken := change.takeover:
        begun, ended = _at(before, _BEGUN, taken.since), _at(before, _ENDED, taken.head)
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

    For a MERGE Spark counts them. Raises Permanent COUNT_MISMATCH.
    """
    if moved:
        added, removed = moved
    elif isinstance(statement, Statement) and statement.is_merge:
        added, removed, _ = replacing.merged_rows(after.table)
    else:
        added, removed = 0, before - after.written
    return replacing.checked(Effect(before, after.written, added, removed))
