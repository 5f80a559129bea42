"""A contract asked of a whole table, as it is after a change: statistics, a scan, keyed jobs.

What a contract says of a file is asked of all rows where it says something of each of them. What
adds up, or is about how a file came, is skipped, and the report says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame

from lakegate.change import Effect
from lakegate.contract.checks import OF_ROWS, Check, Metric, Scope, Severity
from lakegate.contract.expectations import Unit
from lakegate.errors import Permanent
from lakegate.report import CheckResult, Status, Tier
from spark_jobs.audit import tiers, verdict
from spark_jobs.audit.run import Measured, Run
from spark_jobs.spark import iceberg
from spark_jobs.spark.iceberg import table_name

_ABOUT_ONE_FILE: Mapping[str, str] = {
    "rowCount": "it counts the rows of one file",
    "distinctCount": "it counts the keys of one file",
    "encoding": "it is about how a file was decoded",
    "freshness": "it is about how fresh a file is",
    "drift": "it compares a file with those before it",
    "sum": "it adds up the rows of one file",
    "stddev": "it is how far the rows of one file are apart",
    "reconcile": "it compares a file with what was sent along with it",
    "sql": "its query is about one file, as it has not the scope of the table",
}


@dataclass(frozen=True)
class WholeTable(Run):
    """A run that looks at all rows of its table, as it is in a catalog of the session."""

    catalog: str = ""

    @cached_property
    def rows(self) -> DataFrame:
        """All rows of the table."""
        return self.spark.table(table_name(self.contract.table, self.catalog))

    @cached_property
    def written(self) -> int:
        """How many rows the table has."""
        return self.rows.count()


def has_effect(effect: Effect) -> CheckResult:
    """Whether a change changed anything: one that meets no row is a mistake."""
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
    """The result of each check of the contract, asked of all rows `after` the change.

    Raises Permanent NOTHING_CHECKED when none of them can be.
    """
    checks = after.contract.checks
    measured = _measured(after, checks)
    if all(each.skipped for each in measured.values()):
        message = "no check of the contract can be asked of a whole table, so nothing was audited"
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
    """The measure of each check over all rows of the table, by its id."""
    why = {check.id: _skip_reason(check) for check in checks}
    asked = [_as_file_check(check) for check in checks if not why[check.id]]
    found = _measured_by_tiers(run, asked) if asked else {}
    for check in checks:
        if check.id not in found:
            reason = f"not asked of a whole table: {why[check.id] or 'it is about one file'}"
            found[check.id] = Measured(None, 0, Tier.SCAN, skipped=reason)
    return found


def _measured_by_tiers(run: WholeTable, checks: Sequence[Check]) -> dict[str, Measured]:
    """What the tiers find of all data files, as if this run had added them."""
    files = tuple(iceberg.gained_files(run.spark, run.table, None))
    own = replace(run, contract=replace(run.contract, checks=tuple(checks)), files=files)
    used = dict(tiers.AFTER_APPEND)
    if iceberg.has_deletes(run.table):  # statistics still count the rows deleted like that
        del used[Tier.MANIFESTS]
    return tiers.measure(own, {}, used)


def _skip_reason(check: Check) -> str:
    if check.scope is Scope.TABLE:
        return ""
    if check.scope is Scope.FILE:
        return _ABOUT_ONE_FILE.get(check.metric, "")
    return "it looks at the days before a file"


def _as_file_check(check: Check) -> Check:
    """The check as one of the rows that are looked at, which are the whole table's."""
    return replace(_without_quarantine(check), scope=Scope.FILE)


def _without_quarantine(check: Check) -> Check:
    """The check without a way out: a row that is in the table is not kept out of it."""
    return replace(check, quarantine=False)


def _allows_some_in_each_file(check: Check) -> bool:
    """Whether a table of good files may break it: they may repeat each other's keys, or add up."""
    if check.scope is Scope.TABLE:
        return False
    adds_up = check.metric in OF_ROWS and check.expect.unit is Unit.ROWS
    return check.metric is Metric.DUPLICATE or (adds_up and check.expect.met(1, 1))


def _unless_as_before(found: CheckResult, now: Measured, before_change: Measured) -> CheckResult:
    """Where the table had as many before, the change is not to blame."""
    if now.value is None or before_change.value is None or before_change.value < now.value:
        return found
    note = f"{found.message}; before the change it was {before_change.value:,}"
    return replace(found, status=Status.WARN, message=note)
