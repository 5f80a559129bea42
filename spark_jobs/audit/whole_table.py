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
from spark_jobs.audit import tier_keys, tier_scan, tier_statistics, tiers
from spark_jobs.audit.run import Measured, Run
from spark_jobs.spark import iceberg
from spark_jobs.spark.iceberg import table_name

_OF_A_FILE: Mapping[str, str] = {
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
class Whole(Run):
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


def judge(after: Whole, before: Whole) -> tuple[CheckResult, ...]:
    """The result of each check of the contract, asked of all rows `after` the change.

    Raises Permanent NOTHING_CHECKED when none of them can be.
    """
    checks = after.contract.checks
    measured = _measured(after, checks)
    if all(each.skipped for each in measured.values()):
        message = "no check of the contract can be asked of a whole table, so nothing was audited"
        raise Permanent("NOTHING_CHECKED", message)
    results = [tiers.result(_strict(c), measured[c.id], after.contract) for c in checks]
    blamed = [
        check
        for check, found in zip(checks, results, strict=True)
        if found.status is Status.FAIL and _allows_some_in_each_file(check)
    ]
    had = _measured(before, blamed)
    return tuple(
        _no_worse(found, measured[found.id], had[found.id]) if found.id in had else found
        for found in results
    )


def _measured(run: Whole, checks: Sequence[Check]) -> dict[str, Measured]:
    """The measure of each check over all rows of the table, by its id."""
    why = {check.id: _why_not(check) for check in checks}
    asked = [_of_these_rows(check) for check in checks if not why[check.id]]
    found = _asked(run, asked) if asked else {}
    for check in checks:
        if check.id not in found:
            reason = f"not asked of a whole table: {why[check.id] or 'it is about one file'}"
            found[check.id] = Measured(None, 0, Tier.SCAN, skipped=reason)
    return found


def _asked(run: Whole, checks: Sequence[Check]) -> dict[str, Measured]:
    """What the tiers find of all data files, as if this run had added them."""
    files = tuple(iceberg.gained_files(run.spark, run.table, None))
    own = replace(run, contract=replace(run.contract, checks=tuple(checks)), files=files)
    found: dict[str, Measured] = {}
    # Statistics also count rows that were deleted without rewriting their files.
    first = () if iceberg.has_deletes(run.table) else (tier_statistics.answer,)
    for answer in (*first, tier_scan.answer, tier_keys.answer):
        found |= answer(own, [check for check in checks if check.id not in found])
    return found


def _why_not(check: Check) -> str:
    if check.scope is Scope.TABLE:
        return ""
    if check.scope is Scope.FILE:
        return _OF_A_FILE.get(check.metric, "")
    return "it looks at the days before a file"


def _of_these_rows(check: Check) -> Check:
    """The check as one of the rows that are looked at, which are the whole table's."""
    return replace(_strict(check), scope=Scope.FILE)


def _strict(check: Check) -> Check:
    """The check without a way out: a row that is in the table is not kept out of it."""
    return replace(check, quarantine=False)


def _allows_some_in_each_file(check: Check) -> bool:
    """Whether a table of good files may break it: they may repeat each other's keys, or add up."""
    if check.scope is Scope.TABLE:
        return False
    adds_up = check.metric in OF_ROWS and check.expect.unit is Unit.ROWS
    return check.metric is Metric.DUPLICATE or (adds_up and check.expect.met(1, 1))


def _no_worse(found: CheckResult, now: Measured, had: Measured) -> CheckResult:
    """Where the table had as many before, the change is not to blame."""
    if now.value is None or had.value is None or had.value < now.value:
        return found
    note = f"{found.message}; before the change it was {had.value:,}"
    return replace(found, status=Status.WARN, message=note)
