"""One run that looks again: at what main gained since the file was audited, where that is enough.

The file's data files are on the run's branch already, which this job cannot write. Nothing of the
landed object is read: what was found in it stands.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark import __version__ as spark_version
from pyspark.sql import DataFrame, SparkSession

from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.report import AuditReport, CheckResult
from spark_jobs.audit import main_table, tier_keys, tiers
from spark_jobs.audit.main_table import Main
from spark_jobs.audit.run import Run
from spark_jobs.spark import iceberg
from spark_jobs.spark.iceberg import table_name
from spark_jobs.spark.session import CATALOG, add_catalog
from spark_jobs.spark.step_metrics import Meter, now
from spark_jobs.storage import Storage

_EARLIER = "earlier"


@dataclass(frozen=True)
class _Gained:
    """What main's table gained since the file was audited before.

    `now` is the table where the fresh branch was cut, `earlier` Iceberg's as it was at that audit,
    None where there was none.
    """

    spark: SparkSession
    now: Main
    earlier: Any | None

    def had(self, condition: str) -> DataFrame | None:
        """Rows that meet the condition in files that main has gained; None where it has none."""
        if iceberg.has_deletes(self.now.table):  # which also apply to some of these files
            return self.now.had(condition)
        name = self.now.name
        where = main_table.excluding(self.spark, name, condition) if condition else None
        files = iceberg.gained_files(self.spark, self.now.table, self.earlier, where)
        return iceberg.rows_of(self.spark, self.now.table, files) if files else None


def audit_again(spec: JobSpec, storage: Storage, spark: SparkSession, token: str) -> AuditReport:
    """Look at the checks of the whole table again; the other results are the earlier report's.

    Raises Permanent when that report is gone or is not what the run was told.
    """
    meter = Meter(spark)
    contract = storage.contract()
    earlier = storage.report(spec.earlier_report)
    if (earlier.ingestion, earlier.base_hash) != (spec.ingestion, spec.reaudit_base):
        message = f"{spec.earlier_report} does not tell what was audited before"
        raise Permanent("FOREIGN_REPORT", message)
    with meter.step("audit"):
        again = _results(_run(spec, contract, spark, token), earlier)
    results = tuple(again.get(each.id) or _carried(each, earlier) for each in earlier.checks)
    verdict, reason = tiers.verdict(results)
    return replace(
        earlier,
        attempt=spec.attempt,
        verdict=verdict,
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
    """The run as it was after its append, but on the fresh branch.

    Raises Permanent TABLE_GONE where the table is not there.
    """
    add_catalog(spark, CATALOG, spec.nessie_uri, spec.branch, spec.audited_hash, token)
    entered = iceberg.find_iceberg_table(spark, table_name(contract.table))
    run = Run(spark, spec, token, contract, entered, ())
    base = main_table.main(run).table
    if entered is None or base is None:
        raise Permanent("TABLE_GONE", f"there is no table {contract.table} on {spec.branch}")
    return replace(run, files=tuple(iceberg.gained_files(spark, entered, base)))


def _results(run: Run, earlier: AuditReport) -> Mapping[str, CheckResult]:
    """The results of the checks that look beyond the file.

    Where the earlier audit found no row that repeats a key, only what main gained can have one;
    where it did, and they were allowed, all are compared anew, since both may have the same key.
    All other measures of the table are taken anew.
    """
    add_catalog(
        run.spark, _EARLIER, run.spec.nessie_uri, run.spec.branch, run.spec.reaudit_base, run.token
    )
    name = table_name(run.contract.table, _EARLIER)
    now = main_table.main(run)
    gained = _Gained(run.spark, now, iceberg.find_iceberg_table(run.spark, name))
    clean = {each.id for each in earlier.checks if each.counted == 0}
    checks = [check for check in run.contract.checks if check.checks_whole_table]
    measured = tier_keys.answer(run, checks, lambda c: gained.had if c.id in clean else now.had)
    return {check.id: tiers.result(check, measured[check.id], run.contract) for check in checks}


def _carried(result: CheckResult, earlier: AuditReport) -> CheckResult:
    return replace(result, attempt=result.attempt or earlier.attempt)
