"""Tier 4: checks that need a Spark job each.

These are keys, foreign keys, checks of the whole table, SQL queries and control files. The keys of
the same columns are counted once. A key that contains a unique key needs no job. A check that
cannot be measured does not affect the others.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame

from lakegate.audit.report import Tier
from lakegate.contract.checks import KEYED, OF_ROWS, Check, Metric, Scope, Window
from lakegate.contract.rules import Control, Query, Reference
from lakegate.errors import Permanent
from spark_jobs.audit import check_sql, control_files, external, main_table, tier_scan
from spark_jobs.audit.keys import counts as keys
from spark_jobs.audit.keys import references
from spark_jobs.audit.keys.file_keys import unique_part
from spark_jobs.audit.keys.key_columns import KeyColumns, Unreadable
from spark_jobs.audit.keys.known_keys import MOST_OWN, KeyFiles, OwnKeys, Suspects
from spark_jobs.audit.main_table import Condition, FindScans, MainTable
from spark_jobs.audit.run import Measured, Run
from spark_jobs.lake.storage import Storage
from spark_jobs.spark import iceberg, jvm


@dataclass(frozen=True)
class _KeyAudit:
    """The checks of one run, with the keys that were counted so far.

    `find_scans` returns the lookup for the data files that a check's keys are compared with, None
    for all of main's. `own` holds keys by their columns, None where only Spark can read them.
    `unique` holds the checks of keys without duplicates, in the scope in which they have none.
    """

    run: Run
    find_scans: Callable[[Check], FindScans] | None
    own: dict[tuple[str, ...], OwnKeys | None] = field(default_factory=dict)
    counted: dict[tuple[frozenset[str], str], keys.Keys] = field(default_factory=dict)
    unique: list[Check] = field(default_factory=list)

    @cached_property
    def main(self) -> MainTable:
        """Return the run's table as it was when the branch was created."""
        return main_table.open_table(self.run)

    @cached_property
    def storage(self) -> Storage:
        """Return the buckets of the run."""
        return Storage.objects_only(self.run.spec)


def is_measured(check: Check) -> bool:
    """Return if the check belongs to this tier."""
    metric = check.basis.metric
    return metric in KEYED or (check.checks_whole_table and metric in (*OF_ROWS, Metric.ROWS))


def answer(
    run: Run,
    checks: Iterable[Check],
    find_scans: Callable[[Check], FindScans] | None = None,
) -> Mapping[str, Measured]:
    """Return the measures, by check id, of all checks that need a job of their own.

    `find_scans` returns the lookup for the data files to compare a check's keys with, by default
    all of main's.
    """
    audit = _KeyAudit(run, find_scans)
    able = sorted(filter(is_measured, checks), key=lambda check: len(check.columns))
    rows = [check for check in able if check.basis.metric in OF_ROWS]
    measured = {check.id: _measured_or_problem(audit, check) for check in able if check not in rows}
    for scope in dict.fromkeys(check.scope for check in rows):
        measured |= _measure_rows(run, [check for check in rows if check.scope == scope])
    return measured


def _measured_or_problem(audit: _KeyAudit, check: Check) -> Measured:
    """Measure a check, or return the problem. Raises Transient where a retry may help."""
    try:
        return _measured(audit, check.basis)
    except (*jvm.JavaError, Permanent) as error:
        return _unmeasured(audit.run, error)


def _unmeasured(run: Run, error: Exception) -> Measured:
    return Measured(None, run.written, Tier.KEYS, problem=tier_scan.problem(run, error))


def _measured(audit: _KeyAudit, check: Check) -> Measured:
    run = audit.run
    tier_scan.check_own_sql(run.spark, check)
    match check.metric, check.rule:
        case Metric.DUPLICATE, _:
            return _duplicates(audit, check)
        case Metric.DISTINCT, _:
            return Measured(_distinct(audit, check), run.written, Tier.KEYS)
        case Metric.ORPHAN, Reference() as reference:
            rows = _checked_rows(run, check)
            count, note = references.missing(run, check, reference, rows)
            return Measured(count, _row_count(run, check, rows), Tier.KEYS, note=note)
        case Metric.QUERY, Query(text):
            return Measured(
                external.answer(run, text, _rows_in_scope(run, check)), run.written, Tier.KEYS
            )
        case Metric.CONTROL, Control() as control:
            text = audit.storage.control(control.format)
            count, note = control_files.control_differences(run, control, text)
            return Measured(count, run.written, Tier.KEYS, note=note)
        case _:
            return Measured(_checked_rows(run, check).count(), run.written, Tier.KEYS)


def _duplicates(audit: _KeyAudit, check: Check) -> Measured:
    rows = _row_count(audit.run, check)
    if part := unique_part(check, audit.unique):
        return Measured(0, rows, Tier.KEYS, note=part)
    counted = _counted(audit, check)
    compared = check.checks_whole_table and counted.distinct
    known = _repeated_in_table(audit, check) if compared else 0
    value = counted.excess + known
    if check.checks_whole_table and not value:
        _put_digests(audit, check)
    if counted.excess == 0:
        audit.unique.append(replace(check, scope=Scope.FILE if value else check.scope))
    return Measured(value, rows, Tier.KEYS, note=_note(counted, known))


def _counted(audit: _KeyAudit, check: Check) -> keys.Keys:
    """Count the file's keys, once for all checks of the same columns and rows."""
    of = frozenset(check.columns), check.where
    if of not in audit.counted:
        own = _own_keys(audit, check) if check.checks_whole_table and not check.where else None
        audit.counted[of] = (own and own.counted) or keys.count(_keys_of_file(audit.run, check))
    return audit.counted[of]


def _keys_of_file(run: Run, check: Check) -> DataFrame:
    return _keys(run, check, _filtered(run.rows, check))


def _own_keys(audit: _KeyAudit, check: Check) -> OwnKeys | None:
    """Return the file's keys, read once for all checks of the same columns, or None."""
    if check.columns not in audit.own:
        audit.own[check.columns] = _read_own_keys(audit, check)
    return audit.own[check.columns]


def _read_own_keys(audit: _KeyAudit, check: Check) -> OwnKeys | None:
    run = audit.run
    key = [run.contract.column(name) for name in check.columns]
    if run.written > MOST_OWN or any(column.top != column.name for column in key):
        return None
    columns = KeyColumns.find(iceberg.written_schema(run.spark, run.table), check.columns)
    if columns is None:
        return None
    of_key = KeyFiles(audit.storage, columns)
    files = list(map(iceberg.data_file, run.files))
    try:
        return OwnKeys.read(of_key, files) if all(map(of_key.may_have_digest, files)) else None
    except Unreadable:
        return None


def _put_digests(audit: _KeyAudit, check: Check) -> None:
    """Keep the digests of the file's keys for later files; a re-audit writes nothing."""
    own = _own_keys(audit, check)
    if own and not audit.run.spec.reaudit_base:
        own.put_digests()


def keys_in_table(run: Run, check: Check) -> DataFrame | None:
    """Return the file's keys that main's table has in the check's scope; None if it has none.

    Rows of a run without files of its own are main's.
    """
    audit = _KeyAudit(run, None)
    files = _suspected(audit, check) if run.files else None
    return None if files is None else _keys_there(audit, check, files)


def _repeated_in_table(audit: _KeyAudit, check: Check) -> int:
    """Return how many of the file's keys the table has; nothing is read if statistics say none."""
    files = _suspected(audit, check)
    if files is None:
        return 0
    own = _own_keys(audit, check)
    of_all_rows = not check.where and not isinstance(check.scope, Window)
    if own and files.suspects and of_all_rows and all(s.deletes().isEmpty() for s in files.scans):
        with suppress(Unreadable):  # then Spark reads them, or says what is wrong
            return own.count_in(files.suspects)
    return _keys_there(audit, check, files).count()


@dataclass(frozen=True)
class _Suspected:
    """The scans of main's data files that may have a key of the file, in rows of a condition.

    If the file's own keys could be read, the scans are those of the `suspects` alone.
    """

    scans: Sequence[Any]
    condition: Condition
    suspects: Suspects | None = None


def _suspected(audit: _KeyAudit, check: Check) -> _Suspected | None:
    """Return where main's table may have a key of the file; None if it has none.

    Of the data files that statistics allow, only those are left that may have one by their digests.
    """
    condition = _may_have_keys(audit.run, audit.main, check)
    if condition is None:
        return None
    find_scans = audit.find_scans(check) if audit.find_scans else audit.main.find_scans
    scans = find_scans(condition)
    own = _own_keys(audit, check) if scans else None
    if own is None:
        return _Suspected(scans, condition) if scans else None
    by_path = {str(scan.file().location()): scan for scan in scans}
    files = [iceberg.data_file(scan.file()) for scan in by_path.values()]
    suspects = own.suspects(audit.run.spark, files)
    left = [by_path[path] for path in suspects.paths]
    return _Suspected(left, condition, suspects) if left else None


def _keys_there(audit: _KeyAudit, check: Check, files: _Suspected) -> DataFrame:
    """Return the keys of the file that live rows of the suspected files have."""
    run, sql = audit.run, files.condition.sql
    there = iceberg.rows_in(run.spark, audit.main.table, files.scans)
    there = _filtered(there.where(sql) if sql else there, check)
    return keys.found_in(_keys_of_file(run, check), _keys(run, check, there))


def _may_have_keys(run: Run, main: MainTable, check: Check) -> Condition | None:
    """Return the condition on rows of main that may have the file's keys; None if none can."""
    columns = [run.contract.column(name) for name in check.columns]
    dated = [check.scope.column] if isinstance(check.scope, Window) else []
    if main.lacks_columns([*(column.top for column in columns), *dated]):
        return None
    window = [main_table.within_window(run, check.scope)] if isinstance(check.scope, Window) else []
    condition = main_table.key_range(run, columns, [c.name for c in columns])
    if window:
        return Condition(" AND ".join(filter(None, [condition.sql, *window])))
    return condition


def _note(counted: keys.Keys, known: int) -> str:
    before = f"{keys.in_words(known)} already in the table" if known else ""
    return ", ".join(filter(None, (counted.note, before)))


def _distinct(audit: _KeyAudit, check: Check) -> int:
    if not check.checks_whole_table:
        return _counted(audit, check).distinct
    return keys.count(_keys(audit.run, check, _checked_rows(audit.run, check))).distinct


def _measure_rows(run: Run, checks: Sequence[Check]) -> dict[str, Measured]:
    """Measure checks of rows in one scope, which is larger than the file."""
    try:
        rows = _rows_in_scope(run, checks[0])
    except (*jvm.JavaError, Permanent) as error:
        return {check.id: _unmeasured(run, error) for check in checks}
    measured, own = (tier_scan.scanned(run, each, checks) for each in (rows, run.rows))
    return {id_: _beside_own(each, own[id_]) for id_, each in measured.items()}


def _beside_own(measured: Measured, own: Measured) -> Measured:
    """Return the measure over a larger scope, with the part of it that is in the file."""
    if measured.problem or own.problem:
        return replace(measured, tier=Tier.KEYS, problem=measured.problem or own.problem)
    return replace(measured, tier=Tier.KEYS, note=f"{own.value:,} of them in the file")


def _keys(run: Run, check: Check, rows: DataFrame) -> DataFrame:
    return keys.keys_of(rows, keys.key_expressions(check.columns, run.contract))


def _filtered(rows: DataFrame, check: Check) -> DataFrame:
    return rows.where(check_sql.checks_row(check)) if check.where else rows


def _checked_rows(run: Run, check: Check) -> DataFrame:
    return _filtered(_rows_in_scope(run, check), check)


def _rows_in_scope(run: Run, check: Check) -> DataFrame:
    """Return the rows in the check's scope, always with the file's own."""
    if check.scope is Scope.FILE:
        return run.rows
    if not isinstance(check.scope, Window):
        return main_table.whole_table(run)
    newer = f"coalesce({main_table.within_window(run, check.scope)}, false)"
    return main_table.whole_table(run).where(newer).unionByName(run.rows.where(f"NOT {newer}"))


def _row_count(run: Run, check: Check, checked: DataFrame | None = None) -> int:
    """Return the number of rows for percentages; it is counted only if there is one.

    They are the rows that were `checked`, by default the file's.
    """
    if not check.is_share:
        return run.written
    rows = run.rows if checked is None else checked
    return _filtered(rows, check).count() if check.where or rows is not run.rows else run.written
