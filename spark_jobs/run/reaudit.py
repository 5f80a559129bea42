"""Re-audit a file on a fresh branch against what main gained since its audit.

The file's data files are registered on the branch already, which this job cannot write. The landed
object is not read again: the results of its own checks stay valid.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark import __version__ as spark_version
from pyspark.sql import SparkSession

from lakegate.audit.report import AuditReport, CheckResult
from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.job.jobspec import JobSpec
from spark_jobs.audit import main_table, verdict
from spark_jobs.audit.keys import tier_keys
from spark_jobs.audit.main_table import Condition, MainTable
from spark_jobs.audit.run import Run
from spark_jobs.lake.storage import Storage
from spark_jobs.spark import iceberg
from spark_jobs.spark.iceberg import table_name
from spark_jobs.spark.session import CATALOG, add_catalog
from spark_jobs.spark.stall import cancel_when_stalled
from spark_jobs.spark.step_metrics import Meter, now

_EARLIER = "earlier"


@dataclass(frozen=True)
class _GainedFiles:
    """The data files that main's table gained since the earlier audit.

    `now` is the table when the fresh branch was created. `earlier` is Iceberg's table at the
    earlier audit, None where there was none.
    """

    spark: SparkSession
    now: MainTable
    earlier: Any | None

    def find_scans(self, condition: Condition) -> Sequence[Any]:
        """Return scans of the data files that main gained, as `MainTable.find_scans`."""
        if iceberg.has_deletes(self.now.table):  # which also apply to some of these files
            return self.now.find_scans(condition)
        name = self.now.name
        sql = condition.sql
        where = main_table.iceberg_filter(self.spark, name, sql) if sql else None
        files = iceberg.gained_files(self.spark, self.now.table, self.earlier, where)
        return iceberg.scans_of(self.spark, self.now.table, files)


def reaudit(spec: JobSpec, storage: Storage, spark: SparkSession, token: str) -> AuditReport:
    """Repeat the checks of the whole table; take the other results from the earlier report.

    Raises Permanent when that report is gone or belongs to another audit.
    """
    meter = Meter(spark)
    contract = storage.contract()
    earlier = storage.report(spec.earlier_report)
    if (earlier.ingestion, earlier.base_hash) != (spec.ingestion, spec.reaudit_base):
        message = f"{spec.earlier_report} is not the report of the earlier audit"
        raise Permanent("FOREIGN_REPORT", message)
    with meter.step("audit"):
        again = _results(_run(spec, contract, spark, token), earlier)
    results = tuple(again.get(each.id) or _carried(each, earlier) for each in earlier.checks)
    outcome, reason = verdict.verdict(results, contract)
    return replace(
        earlier,
        attempt=spec.attempt,
        verdict=outcome,
        reason=reason,
        branch=spec.branch,
        base_hash=spec.base_hash,
        audited_hash=spec.audited_hash,
        checks=results,
        started_at=meter.started_at,
        finished_at=now(),
        steps=meter.steps,
        engine={"spark": spark_version},
        records=(),
    )


def _run(spec: JobSpec, contract: Contract, spark: SparkSession, token: str) -> Run:
    """Return the run as after its append, but on the fresh branch.

    Raises Permanent TABLE_GONE if the table does not exist.
    """
    add_catalog(spark, CATALOG, spec, spec.audited_hash, token)
    table = iceberg.find_iceberg_table(spark, table_name(contract.table))
    run = Run(spark, spec, token, contract, table, ())
    base = main_table.open_table(run).table
    if table is None or base is None:
        raise Permanent("TABLE_GONE", f"there is no table {contract.table} on {spec.branch}")
    return replace(run, files=tuple(iceberg.gained_files(spark, table, base)))


def _results(run: Run, earlier: AuditReport) -> Mapping[str, CheckResult]:
    """Return the results of the checks that read main.

    If the earlier audit found no repeated key, only rows that main gained can repeat one. If it
    found allowed ones, all keys are compared again, because both sides may have the same key. All
    other checks of the table are measured again.
    """
    add_catalog(run.spark, _EARLIER, run.spec, run.spec.reaudit_base, run.token)
    name = table_name(run.contract.table, _EARLIER)
    now = main_table.open_table(run)
    gained = _GainedFiles(run.spark, now, iceberg.find_iceberg_table(run.spark, name))
    clean = {each.id for each in earlier.checks if each.counted == 0}
    checks = [check for check in run.contract.checks if check.checks_whole_table]
    with cancel_when_stalled(run.spark, run.spec.limits.longest_stall):
        measured = tier_keys.answer(
            run, checks, lambda c: gained.find_scans if c.id in clean else now.find_scans
        )
    return {check.id: verdict.result(check, measured[check.id], run.contract) for check in checks}


def _carried(result: CheckResult, earlier: AuditReport) -> CheckResult:
    return replace(result, attempt=result.attempt or earlier.attempt)
