"""One run that looks again: at what main's table gained since the file was audited, and only that.

The file's data files are on the run's branch already, which this job cannot write. Nothing of the
landed object is read: what was found in it stands.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark import __version__ as spark_version
from pyspark.sql import DataFrame, SparkSession

from lakegate.contract import Contract, Scope
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.report import AuditReport, CheckResult, Tier
from spark_jobs import audit, jvm
from spark_jobs.beyond import count, rows_where
from spark_jobs.meter import Meter, now
from spark_jobs.names import table_name
from spark_jobs.run import Measured
from spark_jobs.session import add_catalog
from spark_jobs.storage import Storage

_ENTERED, _BASE, _EARLIER = "entered", "base", "earlier"


@dataclass(frozen=True)
class _States:
    """The table (`org.apache.iceberg.Table`) on the branch, on main, and on main earlier.

    The first has the file's rows, the second is the first without them, the third what the second
    was when the file was audited before; None where there was none.
    """

    spark: SparkSession
    table: str
    entered: Any
    base: Any
    earlier: Any | None

    def own(self) -> DataFrame:
        """The file's rows."""
        files = jvm.gained_files(self.spark, self.entered, self.base)
        return jvm.rows_of(self.spark, self.entered, files)

    def gained(self, condition: str) -> DataFrame | None:
        """Rows that meet the condition in files that main has gained; None where it has none."""
        if jvm.has_deletes(self.base):  # which also apply to some of these files
            return self.whole(condition)
        name = table_name(self.table, _BASE)
        where = jvm.expression(self.spark, name, condition) if condition else None
        files = jvm.gained_files(self.spark, self.base, self.earlier, where)
        return jvm.rows_of(self.spark, self.base, files) if files else None

    def whole(self, condition: str) -> DataFrame:
        """All rows on main that meet the condition."""
        return rows_where(self.spark, table_name(self.table, _BASE), condition)


def audit_again(spec: JobSpec, storage: Storage, spark: SparkSession, token: str) -> AuditReport:
    """Look at the checks of the whole table again; the other results are the earlier report's.

    Raises Permanent when that report is gone or is not what the run was told.
    """
    meter = Meter(spark)
    contract = storage.contract()
    earlier = storage.report(spec.earlier_report)
    if (earlier.ingestion, earlier.base_hash) != (spec.ingestion, spec.audited_from):
        message = f"{spec.earlier_report} does not tell what was audited before"
        raise Permanent("FOREIGN_REPORT", message)
    with meter.step("audit"):
        again = _results(_states(spec, contract, spark, token), contract, earlier)
    results = tuple(again.get(each.id) or _carried(each, earlier) for each in earlier.checks)
    verdict, reason = audit.verdict(results)
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
    )


def _states(spec: JobSpec, contract: Contract, spark: SparkSession, token: str) -> _States:
    def at(catalog: str, hash_: str) -> Any | None:
        add_catalog(spark, catalog, spec.nessie_uri, spec.branch, hash_, token)
        return jvm.find_iceberg_table(spark, table_name(contract.table, catalog))

    entered, base = at(_ENTERED, spec.audited_hash), at(_BASE, spec.base_hash)
    if entered is None or base is None:
        raise Permanent("TABLE_GONE", f"there is no table {contract.table} on {spec.branch}")
    return _States(spark, contract.table, entered, base, at(_EARLIER, spec.audited_from))


def _results(
    states: _States, contract: Contract, earlier: AuditReport
) -> Mapping[str, CheckResult]:
    """The results of the checks of the whole table.

    Where the earlier audit found none that repeat a key, only what main gained can have one;
    where it did, and they were allowed, all are counted anew, since both may have the same key.
    """
    clean = {each.id for each in earlier.checks if each.counted == 0}
    whole, own = table_name(contract.table, _ENTERED), states.own()
    counted = partial(count, states.spark)
    return {
        check.id: audit.result(
            check,
            Measured(
                counted(
                    check,
                    whole,
                    own,
                    contract,
                    states.gained if check.id in clean else states.whole,
                ),
                earlier.rows_written,
                Tier.KEYS,
            ),
            contract,
        )
        for check in contract.checks
        if check.scope is Scope.TABLE
    }


def _carried(result: CheckResult, earlier: AuditReport) -> CheckResult:
    return replace(result, attempt=result.attempt or earlier.attempt)
