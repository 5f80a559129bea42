"""Tier 2: checks that the statistics of the new data files answer without reading a row.

Iceberg's writer counts each column's nulls and NaNs and notes its smallest and largest value.
Counts are exact. Bounds prove that no value is out of range, but not how many values are.
"""

from collections.abc import Iterable, Mapping

from lakegate.contract.checks import Check, Metric, Scope
from lakegate.contract.columns import Column
from lakegate.contract.model import Contract
from lakegate.contract.rules import Rule
from lakegate.report import Tier
from spark_jobs.audit.run import Measured, Run
from spark_jobs.spark import iceberg

_COUNTED = ("binary", "struct", "array", "map")
_INTEGERS = ("int", "bigint")
_FLOATING = ("float", "double")
_BOUNDED = (*_INTEGERS, *_FLOATING, "decimal", "date", "timestamp", "timestamp_ntz")


def may_answer(check: Check, contract: Contract) -> bool:
    """Return if statistics can answer a check, provided that they exist and no value breaks it."""
    basis = check.basis
    if basis.metric is Metric.ROWS:
        return basis.scope is Scope.FILE and not basis.where
    if basis.where or basis.quarantine or len(basis.columns) != 1:
        return False
    column = contract.column(basis.columns[0])
    if len(column.steps) > 1 or basis.scope is not Scope.FILE:
        return False
    if basis.metric is Metric.NULL:
        return column.kind not in _COUNTED
    return basis.metric is Metric.INVALID and _is_range(basis.rule, column)


def answer(run: Run, checks: Iterable[Check]) -> Mapping[str, Measured]:
    """Return the measures, by check id, of the checks that the new files' statistics decide."""
    numbers = {c.id: _number(run, c.basis) for c in checks if may_answer(c, run.contract)}
    return {
        id_: Measured(number, run.written, Tier.MANIFESTS)
        for id_, number in numbers.items()
        if number is not None
    }


def _number(run: Run, check: Check) -> int | None:
    match check.metric:
        case Metric.ROWS:
            return run.written
        case Metric.NULL:
            return iceberg.null_count(run.table, check.columns[0], run.files)
        case _:
            return None if _may_break(run, check) else 0


def _may_break(run: Run, check: Check) -> bool:
    column = run.contract.column(check.columns[0])
    limits = check.values.bounds
    where = run.spark, run.table, run.files, column.name
    outside = any(
        iceberg.may_match(*where, sign, _typed(text, column, sign)) for sign, text in limits
    )
    return outside or (column.type in _FLOATING and iceberg.may_be_nan(*where))


def _is_range(rule: object, column: Column) -> bool:
    """Return if a rule has only bounds, and statistics hold the column's values in full."""
    if not isinstance(rule, Rule) or column.kind not in _BOUNDED:
        return False
    limits = rule.minimum, rule.maximum, rule.exclusive_minimum, rule.exclusive_maximum
    return rule == Rule(
        minimum=limits[0],
        maximum=limits[1],
        exclusive_minimum=limits[2],
        exclusive_maximum=limits[3],
    )


def _typed(text: str, column: Column, sign: str) -> int | float | str:
    """Return a bound as Iceberg compares it, which orders -0.0 below 0.0."""
    if column.type in _INTEGERS:
        return int(text)
    if column.type not in _FLOATING:
        return text
    zero = -0.0 if sign in ("<", ">=") else 0.0
    return float(text) or zero
