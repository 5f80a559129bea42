"""Audit a whole table after a change, by scans and keyed jobs.

Checks that a contract makes of a file's rows are made of all rows of the table. Checks that add
up a file's rows, or concern its delivery, are skipped, and the report says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame

from lakegate.audit.report import CheckResult, Status, Tier
from lakegate.contract.checks import OF_ROWS, Check, Metric, Scope, Severity
from lakegate.contract.expectations import Unit
from lakegate.errors import Permanent
from lakegate.job.change import Effect
from spark_jobs.audit import tiers, verdict
from spark_jobs.audit.run import Measured, Run
from spark_jobs.spark import iceberg
from spark_jobs.spark.iceberg import table_name
from spark_jobs.spark.stall import cancel_when_stalled

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
        for check, answer in zip(checks, results, strict=True)
        if answer.status is Status.FAIL and _allows_some_in_each_file(check)
    ]
    before_change = _measured(before, blamed)
    return tuple(
        _unless_as_before(answer, measured[answer.id], before_change[answer.id])
        if answer.id in before_change
        else answer
        for answer in results
    )


def _measured(run: WholeTable, checks: Sequence[Check]) -> dict[str, Measured]:
    """Return the measure of each check over all rows of the table, by its id."""
    why = {check.id: _skip_reason(check) for check in checks}
    asked = [_as_file_check(check) for check in checks if not why[check.id]]
    measures = _measured_as_file(run, asked) if asked else {}
    for check in checks:
        if check.id not in measures:
            reason = f"not evaluated on a whole table: {why[check.id] or 'it is about one file'}"
            measures[check.id] = Measured(None, 0, Tier.SCAN, skipped=reason)
    return measures


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


def _unless_as_before(result: CheckResult, now: Measured, before_change: Measured) -> CheckResult:
    """Return a warning where the table had as many before: the change did not cause them."""
    if now.value is None or before_change.value is None or before_change.value < now.value:
        return result
    note = f"{result.message}; before the change it was {before_change.value:,}"
    return replace(result, status=Status.WARN, message=note)
