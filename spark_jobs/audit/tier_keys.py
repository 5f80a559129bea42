"""Checks that need a job of their own: over keys, over the table, over a query or a control file.

What one key's columns need is counted once, and a key that contains one that was found unique needs
no job. A check that cannot be measured harms no other.
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
from spark_jobs.audit.main_table import Had
from spark_jobs.audit.run import Measured, Run
from spark_jobs.errors import explain, told
from spark_jobs.spark import jvm
from spark_jobs.storage import Storage

_Scope = Scope | Window


@dataclass(frozen=True)
class _Look:
    """One look at a run's checks, with what it has found of keys already.

    `had` gives what to compare a check's keys with. `unique` are the columns of keys that none of
    the rows in the scope repeats, with the condition on these rows.
    """

    run: Run
    had: Callable[[Check], Had]
    counted: dict[tuple[frozenset[str], str], keys.Keys] = field(default_factory=dict)
    unique: list[tuple[_Scope, frozenset[str], str]] = field(default_factory=list)


def is_measured(check: Check) -> bool:
    """Whether the check is one of those that are measured here."""
    metric = check.basis.metric
    return metric in KEYED or (check.checks_whole_table and metric in (*OF_ROWS, Metric.ROWS))


def answer(
    run: Run,
    checks: Iterable[Check],
    had: Callable[[Check], Had] | None = None,
) -> Mapping[str, Measured]:
    """The measures, by check id, of all checks that need a job of their own.

    `had` gives the rows that a check's keys are compared with, by default all of main's.
    """
    look = _Look(run, had or (lambda _: main_table.main(run).had))
    able = sorted(filter(is_measured, checks), key=lambda check: len(check.columns))
    rows = [check for check in able if check.basis.metric in OF_ROWS]
    measured = {check.id: _guarded(look, check) for check in able if check not in rows}
    for scope in dict.fromkeys(check.scope for check in rows):
        measured |= _of_rows(run, [check for check in rows if check.scope == scope])
    return measured


def _guarded(look: _Look, check: Check) -> Measured:
    """The measure of a check, or why there is none. Raises Transient where a retry may help."""
    try:
        return _measured(look, check.basis)
    except (*jvm.JavaError, Permanent) as error:
        return _problem(look.run, error)


def _problem(run: Run, error: Exception) -> Measured:
    why: Exception = error
    if isinstance(error, jvm.JavaError):
        explained = explain(error, "it cannot be measured", otherwise="CHECK_FAILED")
        why = told(explained, run.contract)
    if not isinstance(why, Permanent):
        raise why from error
    return Measured(None, run.written, Tier.KEYS, problem=why.message)


def _measured(look: _Look, check: Check) -> Measured:
    run = look.run
    tier_scan.require_own_sql(run.spark, check)
    match check.metric, check.rule:
        case Metric.DUPLICATE, _:
            return _duplicates(look, check)
        case Metric.DISTINCT, _:
            return Measured(_distinct(look, check), run.written, Tier.KEYS)
        case Metric.ORPHAN, Reference() as reference:
            rows = _looked_at(run, check)
            count, note = keys.missing(run, check, reference, rows)
            return Measured(count, _all(run, check, rows), Tier.KEYS, note=note)
        case Metric.QUERY, Query(text):
            return Measured(external.answer(run, text, _rows(run, check)), run.written, Tier.KEYS)
        case Metric.CONTROL, Control() as told:
            text = Storage.connect(run.spec).control(told.format)
            count, note = external.differing(run, told, text)
            return Measured(count, run.written, Tier.KEYS, note=note)
        case _:
            return Measured(_looked_at(run, check).count(), run.written, Tier.KEYS)


def _duplicates(look: _Look, check: Check) -> Measured:
    run, columns = look.run, frozenset(check.columns)
    rows = _all(run, check, run.rows)
    if part := next(_unique_within(look, check), None):
        note = f"{', '.join(sorted(part))} alone is unique"
        return Measured(0, rows, Tier.KEYS, note=note)
    found = _counted(look, check)
    known = _known(look, check, found) if check.checks_whole_table and found.distinct else None
    value = found.excess + (known or 0)
    if found.excess == 0:
        look.unique.append((Scope.FILE if value else check.scope, columns, check.where))
    by_statistics = known is None and check.checks_whole_table and found.excess == 0
    tier = Tier.MANIFESTS if by_statistics else Tier.KEYS
    return Measured(value, rows, tier, note=_said(found, known))


def _unique_within(look: _Look, check: Check) -> Iterator[frozenset[str]]:
    """Keys within the check's key that no row repeats: then none repeats the larger one."""
    for scope, columns, where in look.unique:
        reaches = check.scope is Scope.FILE or scope in (Scope.TABLE, check.scope)
        if columns <= frozenset(check.columns) and reaches and where in ("", check.where):
            yield columns


def _counted(look: _Look, check: Check) -> keys.Keys:
    """How often the file's keys occur, once for all checks of the same columns and rows."""
    of = frozenset(check.columns), check.where
    if of not in look.counted:
        look.counted[of] = keys.count(_keys(look.run, check, _filtered(look.run.rows, check)))
    return look.counted[of]


def _known(look: _Look, check: Check, counted: keys.Keys) -> int | None:
    """How many different keys of the file the table has; None where statistics say none."""
    run = look.run
    columns = [run.contract.column(name) for name in check.columns]
    dated = [check.scope.column] if isinstance(check.scope, Window) else []
    if main_table.main(run).lacks([*(column.top for column in columns), *dated]):
        return None
    window = [main_table.newer(run, check.scope)] if isinstance(check.scope, Window) else []
    conditions = [main_table.between(run, columns, [c.name for c in columns]), *window]
    there = look.had(check)(" AND ".join(filter(None, conditions)))
    if there is None:
        return None
    own = _keys(run, check, _filtered(run.rows, check))
    return keys.found_in(own, counted, _keys(run, check, _filtered(there, check))).count()


def _said(found: keys.Keys, known: int | None) -> str:
    within = f"{_words(found.repeated)} on {found.rows:,} rows" if found.repeated else ""
    before = f"{_words(known)} that the table had" if known else ""
    return ", ".join(filter(None, (within, before)))


def _words(count: int) -> str:
    return "1 key" if count == 1 else f"{count:,} keys"


def _distinct(look: _Look, check: Check) -> int:
    if not check.checks_whole_table:
        return _counted(look, check).distinct
    return keys.count(_keys(look.run, check, _looked_at(look.run, check))).distinct


def _of_rows(run: Run, checks: Sequence[Check]) -> dict[str, Measured]:
    """Checks of single rows over more rows than the file's, all of one scope in one scan."""
    try:
        for check in checks:
            tier_scan.require_own_sql(run.spark, check)
        rows = _rows(run, checks[0])
        everything = F.count(F.lit(1)).alias("all")
        asked = list(tier_scan.aggregates(checks, run.contract))
        found = rows.agg(everything, *asked).collect()[0].asDict()
        own = tier_scan.read(checks, run.rows.agg(*asked).collect()[0].asDict(), 0, Tier.KEYS)
    except (*jvm.JavaError, Permanent) as error:
        if len(checks) > 1:
            return {id_: each for check in checks for id_, each in _of_rows(run, [check]).items()}
        return {checks[0].id: _problem(run, error)}
    measured = tier_scan.read(checks, found, found["all"], Tier.KEYS)
    return {
        id_: replace(each, note=f"{own[id_].value:,} of them in the file")
        for id_, each in measured.items()
    }


def _keys(run: Run, check: Check, rows: DataFrame) -> DataFrame:
    return keys.keys_of(rows, keys.of_check(check.columns, run.contract))


def _filtered(rows: DataFrame, check: Check) -> DataFrame:
    return rows.where(check_sql.looked_at(check)) if check.where else rows


def _looked_at(run: Run, check: Check) -> DataFrame:
    return _filtered(_rows(run, check), check)


def _rows(run: Run, check: Check) -> DataFrame:
    """The rows in the check's scope; the file's own always are."""
    if check.scope is Scope.FILE:
        return run.rows
    if not isinstance(check.scope, Window):
        return main_table.whole(run)
    newer = f"coalesce({main_table.newer(run, check.scope)}, false)"
    return main_table.whole(run).where(newer).unionByName(run.rows.where(f"NOT {newer}"))


def _all(run: Run, check: Check, rows: DataFrame) -> int:
    """How many rows a percentage is of; counted only where there is one."""
    expected = [check.expect, *([check.warn] if check.warn else [])]
    if all(each.unit is not Unit.PERCENT for each in expected):
        return run.written
    return _filtered(rows, check).count() if check.where or rows is not run.rows else run.written
