"""Rules of `type: custom`: the checks that the standard has no metric for.

`engine: lakegate`, and an `implementation` with the check and its arguments, the operator included:
the standard's schema allows none beside `type: custom` (ODCS 3.1, DataQualityCustom). A rule for
another engine is that tool's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import inf

from lakegate.contract.checks import OF_VALUES, Drift, Metric, Severity
from lakegate.contract.columns import Column, quoted
from lakegate.contract.expectations import NONE, Expectation, Operator, Unit
from lakegate.contract.reading.literals import MOMENTS, NUMERIC
from lakegate.contract.reading.properties import Property
from lakegate.contract.reading.quality.drafts import Measured, listed
from lakegate.contract.reading.sql import read_condition
from lakegate.contract.rules import Condition, Control, Quantile, Rule
from lakegate.contract.text.fields import Field
from lakegate.contract.text.problems import suggestion

ENGINE = "lakegate"
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
DRIFTING = (
    *(Metric.ROWS, Metric.NULL, Metric.SUM, Metric.MEAN),
    *(Metric.STDDEV, Metric.QUANTILE, Metric.AGE),
)
_USUAL = Decimal(4)


def read_custom(field: Field, properties: list[Property], own: str = "") -> Measured | None:
    """Return what a rule measures; None if it was refused, or is for another tool's engine.

    `own` is the name of the rule's property, "" for a rule of the whole object.
    """
    engine = field.required_text("engine")
    if engine != ENGINE:
        if near := suggestion(engine, (ENGINE,)):
            field.refuse(f"unknown engine {engine!r}{near}", "engine")
        return None
    stated = field.at("implementation")
    name = stated.choice("check", tuple(CHECKS))
    if name not in CHECKS:
        return None
    keys, read = CHECKS[name]
    arguments = [key for key in keys if not (key == "column" and own)]
    stated.limit_keys(("check", "unit", *arguments, *Operator))
    known = {inner.column.name: inner.column for entry in properties for inner in entry.walk()}
    return read(_Stated(stated, known, own))


@dataclass(frozen=True)
class _Stated:
    """An implementation: its place, the columns that it may name, and the rule's own one or ""."""

    field: Field
    known: Mapping[str, Column]
    own: str

    def column(self, key: str = "column", kinds: tuple[str, ...] = ()) -> str:
        """Return the column that is named under a key, or the rule's own one; "" if refused."""
        own = key == "column" and self.own
        name = own or self.field.required_text(key)
        named = self.field.known(name, self.known, "a column of this object", key) if name else None
        if named and len(named.steps) > 1:
            reason = "lies within another column: only whole columns go here"
            self.field.refuse(f"{name!r} {reason}", key)
        elif named and not _is_one_of(named, kinds):
            reason = f"is {named.type}, and must be {' or '.join(kinds)}"
            self.field.refuse(f"{name!r} {reason}", key)
        else:
            return name if named else ""
        return ""

    def columns(self, key: str, kinds: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the columns that are listed under a key."""
        whole = {name: column for name, column in self.known.items() if len(column.steps) == 1}
        place = self.field.at(key)
        for item in place.items():
            column = whole.get(item.node.text)
            if column and not _is_one_of(column, kinds):
                item.refuse(f"{column.name!r} is {column.type}, and must be a number")
        return listed(place, {name: name for name in whole}, "a column of this object")


def _is_one_of(column: Column, kinds: tuple[str, ...]) -> bool:
    """Return if a column has one of these types, if any; one whose type was refused has all."""
    return not kinds or column.kind in ("", *kinds)


Reader = Callable[[_Stated], Measured | None]


def _row_expression(stated: _Stated) -> Measured | None:
    sql = read_condition(stated.field, "expression").strip()
    columns = (stated.own,) if stated.own else ()
    return Measured(Metric.BROKEN, columns, Condition(sql), usual=NONE) if sql else None


def _column_pair(stated: _Stated) -> Measured | None:
    left, right = stated.column(), stated.column("other")
    operator = stated.field.choice("operator", COMPARISONS)
    if not (left and right and operator):
        return None
    sql = f"{quoted(left)} {operator} {quoted(right)}"
    return Measured(Metric.BROKEN, (left, right), Condition(sql), usual=NONE)


def _encoding(stated: _Stated) -> Measured | None:
    column = stated.column(kinds=("string", "time"))
    return Measured(Metric.UNDECODED, (column,), usual=NONE) if column else None


def _column_reader(metric: Metric, kinds: tuple[str, ...], unit: Unit = Unit.NUMBER) -> Reader:
    def read(stated: _Stated) -> Measured | None:
        column = stated.column(kinds=kinds)
        return Measured(metric, (column,), unit=unit) if column else None

    return read


def _quantile(stated: _Stated) -> Measured | None:
    column, reason = stated.column(kinds=NUMERIC), "must be a number from 0 to 1, such as 0.95"
    share = stated.field.at("share").number(lambda value: 0 <= value <= 1, reason)
    if not column or share is None:
        return None
    return Measured(Metric.QUANTILE, (column,), Quantile(share), Unit.NUMBER)


def _distinct(stated: _Stated) -> Measured | None:
    if stated.own and stated.field.has("properties"):
        reason = "is for rules of the whole object: here it is the property itself"
        stated.field.refuse(reason, "properties")
    columns = (stated.own,) if stated.own else stated.columns("properties")
    if columns:
        return Measured(Metric.DISTINCT, columns, unit=Unit.NUMBER)
    stated.field.refuse("must list the properties that are counted together", "properties")
    return None


def _reconcile(stated: _Stated) -> Measured | None:
    if stated.own:
        reason = "reconcile is about the whole file: put it at the schema object"
        stated.field.refuse(reason, "check")
    format_ = stated.field.choice("format", ("json", "csv"), default="json")
    control = Control(format_, stated.columns("sums", NUMERIC))
    return Measured(Metric.CONTROL, (), control, Unit.NUMBER, NONE)


def _drift(stated: _Stated) -> Measured | None:
    field = stated.field
    for operator in filter(field.has, Operator):
        field.refuse("says by `k` how far its measure may be off, and by no operator", operator)
    metric, k = field.choice("of", DRIFTING), field.at("k")
    limit = k.number(lambda v: 0 < v < inf, "must be a number above 0") if k.given else _USUAL
    if field.has("share") and metric != Metric.QUANTILE:
        field.refuse(f"belongs to a quantile, and not to {metric}", "share")
    if limit is None or metric not in DRIFTING:
        return None
    of = _drifting(Metric(metric), stated)
    if of is None or not isinstance(of.rule, Rule | Quantile):
        return None
    usual = Expectation(Operator.AT_MOST, limit)
    drift = Drift(of.metric, of.rule)
    return Measured(Metric.DRIFT, of.columns, drift, Unit.NUMBER, usual, Severity.WARNING)


def _drifting(metric: Metric, stated: _Stated) -> Measured | None:
    """Return the measure whose drift is measured."""
    if metric is Metric.QUANTILE:
        return _quantile(stated)
    if metric is not Metric.ROWS:
        kinds = MOMENTS if metric is Metric.AGE else NUMERIC if metric in OF_VALUES else ()
        return _column_reader(metric, kinds)(stated)
    if not stated.field.has("column") and not stated.own:
        return Measured(metric)
    stated.field.refuse("rowCount is of the whole file: write the rule under the object", "of")
    return None


CHECKS: Mapping[str, tuple[tuple[str, ...], Reader]] = {
    "rowExpression": (("expression",), _row_expression),
    "columnPair": (("column", "operator", "other"), _column_pair),
    "encoding": (("column",), _encoding),
    "sum": (("column",), _column_reader(Metric.SUM, NUMERIC)),
    "mean": (("column",), _column_reader(Metric.MEAN, NUMERIC)),
    "stddev": (("column",), _column_reader(Metric.STDDEV, NUMERIC)),
    "quantile": (("column", "share"), _quantile),
    "distinctCount": (("properties",), _distinct),
    "reconcile": (("format", "sums"), _reconcile),
    "drift": (("of", "column", "share", "k"), _drift),
    "freshness": (("column",), _column_reader(Metric.AGE, MOMENTS, Unit.HOURS)),
}
