"""Tier 5: checks that need a Spark job each.

These are keys, foreign keys, checks of the whole table, SQL queries and control files. The keys of
the same columns are counted once. A key that contains a unique key needs no job. A check that
cannot be measured does not affect the others.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakegate.contract.checks import KEYED, OF_ROWS, Check, Metric, Scope, Window
from lakegate.contract.expectations import Unit
from lakegate.contract.rules import Control, Query, Reference
from lakegate.errors import Permanent
from lakegate.report import Tier
from spark_jobs.audit import check_sql, external, keys, main_table, tier_scan
from spark_jobs.audit.main_table import FindRows
from spark_jobs.audit.run import Measured, Run
from spark_jobs.errors import explain, masked
from spark_jobs.spark import jvm
from spark_jobs.storage import Storage

_Scope = Scope | Window


@dataclass(frozen=True)
class _KeyAudit:
    """The checks of one run, with the keys that were counted so far.

    `find_rows` returns the lookup for the rows that a check's keys are compared with. `unique`
    holds the columns of keys without duplicates, with their scope and condition.
    """

    run: Run
    find_rows: Callable[[Check], FindRows]
    counted: dict[tuple[frozenset[str], str], keys.Keys] = field(default_factory=dict)
    unique: list[tuple[_Scope, frozenset[str], str]] = field(default_factory=list)


def is_measured(check: Check) -> bool:
    """Return if the check belongs to this tier."""
    metric = check.basis.metric
    return metric in KEYED or (check.checks_whole_table and metric in (*OF_ROWS, Metric.ROWS))


def answer(
    run: Run,
    checks: Iterable[Check],
    find_rows: Callable[[Check], FindRows] | None = None,
) -> Mapping[str, Measured]:
    """Return the measures, by check id, of all checks that need a job of their own.

    `find_rows` returns the lookup for the rows to compare a check's keys with, by default all of
    main's.
    """
    audit = _KeyAudit(run, find_rows or (lambda _: main_table.open_table(run).find_rows))
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
        return _problem(audit.run, error)


def _problem(run: Run, error: Exception) -> Measured:
    why: Exception = error
    if isinstance(error, jvm.JavaError):
        explained = explain(error, "the check cannot be measured", otherwise="CHECK_FAILED")
        why = masked(explained, run.contract)
    if not isinstance(why, Permanent):
        raise why from error
    return Measured(None, run.written, Tier.KEYS, problem=why.message)


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
            count, note = keys.missing(run, check, reference, rows)
            return Measured(count, _row_count(run, check, rows), Tier.KEYS, note=note)
        case Metric.QUERY, Query(text):
            return Measured(
                external.answer(run, text, _rows_in_scope(run, check)), run.written, Tier.KEYS
            )
        case Metric.CONTROL, Control() as control:
            text = Storage.connect(run.spec).control(control.format)
            count, note = external.control_differences(run, control, text)
            return Measured(count, run.written, Tier.KEYS, note=note)
        case _:
            return Measured(_checked_rows(run, check).count(), run.written, Tier.KEYS)


def _duplicates(audit: _KeyAudit, check: Check) -> Measured:
    run, columns = audit.run, frozenset(check.columns)
    rows = _row_count(run, check, run.rows)
    if part := next(_unique_parts(audit, check), None):
        note = f"{', '.join(sorted(part))} alone is unique"
        return Measured(0, rows, Tier.KEYS, note=note)
    found = _counted(audit, check)
    known = (
        _repeated_in_table(audit, check, found)
        if check.checks_whole_table and found.distinct
        else None
    )
    value = found.excess + (known or 0)
    if found.excess == 0:
        audit.unique.append((Scope.FILE if value else check.scope, columns, check.where))
    by_statistics = known is None and check.checks_whole_table and found.excess == 0
    tier = Tier.MANIFESTS if by_statistics else Tier.KEYS
    return Measured(value, rows, tier, note=_note(found, known))


def _unique_parts(audit: _KeyAudit, check: Check) -> Iterator[frozenset[str]]:
    """Yield the unique keys within the check's key: they make the larger key unique too."""
    for scope, columns, where in audit.unique:
        reaches = check.scope is Scope.FILE or scope in (Scope.TABLE, check.scope)
        if columns <= frozenset(check.columns) and reaches and where in ("", check.where):
            yield columns


def _counted(audit: _KeyAudit, check: Check) -> keys.Keys:
    """Count the file's keys, once for all checks of the same columns and rows."""
    of = frozenset(check.columns), check.where
    if of not in audit.counted:
        audit.counted[of] = keys.count(_keys(audit.run, check, _filtered(audit.run.rows, check)))
    return audit.counted[of]


def _repeated_in_table(audit: _KeyAudit, check: Check, counted: keys.Keys) -> int | None:
    """Return how many of the file's keys the table has; None where statistics exclude them."""
    run = audit.run
    columns = [run.contract.column(name) for name in check.columns]
    dated = [check.scope.column] if isinstance(check.scope, Window) else []
    if main_table.open_table(run).lacks_columns([*(column.top for column in columns), *dated]):
        return None
    window = [main_table.within_window(run, check.scope)] if isinstance(check.scope, Window) else []
    conditions = [main_table.key_range(run, columns, [c.name for c in columns]), *window]
    there = audit.find_rows(check)(" AND ".join(filter(None, conditions)))
    if there is None:
        return None
    own = _keys(run, check, _filtered(run.rows, check))
    return keys.found_in(own, counted, _keys(run, check, _filtered(there, check))).count()


def _note(found: keys.Keys, known: int | None) -> str:
    before = f"{keys.in_words(known)} already in the table" if known else ""
    return ", ".join(filter(None, (found.note, before)))


def _distinct(audit: _KeyAudit, check: Check) -> int:
    if not check.checks_whole_table:
        return _counted(audit, check).distinct
    return keys.count(_keys(audit.run, check, _checked_rows(audit.run, check))).distinct


def _measure_rows(run: Run, checks: Sequence[Check]) -> dict[str, Measured]:
    """Measure checks of rows in one scope, which is larger than the file, in one scan."""
    try:
        for check in checks:
            tier_scan.check_own_sql(run.spark, check)
        rows = _rows_in_scope(run, checks[0])
        everything = F.count(F.lit(1)).alias("all")
        asked = list(tier_scan.aggregates(checks, run.contract))
        found = rows.agg(everything, *asked).collect()[0].asDict()
        own = tier_scan.read(checks, run.rows.agg(*asked).collect()[0].asDict(), 0, Tier.KEYS)
    except (*jvm.JavaError, Permanent) as error:
        if len(checks) > 1:
            return {
                id_: each for check in checks for id_, each in _measure_rows(run, [check]).items()
            }
        return {checks[0].id: _problem(run, error)}
    measured = tier_scan.read(checks, found, found["all"], Tier.KEYS)
    return {
        id_: replace(each, note=f"{own[id_].value:,} of them in the file")
        for id_, each in measured.items()
    }


def _keys(run: Run, check: Check, rows: DataFrame) -> DataFrame:
    return keys.keys_of(rows, keys.of_check(check.columns, run.contract))


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


def _row_count(run: Run, check: Check, rows: DataFrame) -> int:
    """Return the number of rows for percentages; it is counted only if there is one."""
    expected = [check.expect, *([check.warn] if check.warn else [])]
    if all(each.unit is not Unit.PERCENT for each in expected):
        return run.written
    return _filtered(rows, check).count() if check.where or rows is not run.rows else run.written
