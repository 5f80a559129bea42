"""Rules of `type: custom`: the checks that the standard has no metric for.

`engine: lakegate`, and an `implementation` with the check and its arguments, the operator included:
the standard's schema allows none beside `type: custom` (ODCS 3.1, DataQualityCustom).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from math import inf

from lakegate.contract.checks import OF_VALUES, CheckSpec, Drift, Metric, Severity
from lakegate.contract.columns import quoted
from lakegate.contract.expectations import Expectation, Operator, Unit
from lakegate.contract.literals import NUMERIC
from lakegate.contract.reading.fields import Field
from lakegate.contract.reading.properties import Property
from lakegate.contract.reading.sql import read_condition
from lakegate.contract.reading.yaml import suggestion
from lakegate.contract.rules import Condition, Control, Quantile, Rule

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
DRIFTING = (
    *(Metric.ROWS, Metric.NULL, Metric.SUM, Metric.MEAN),
    *(Metric.STDDEV, Metric.QUANTILE, Metric.AGE),
)
_USUAL = Decimal(4)
_MOMENTS = ("date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True)
class Custom:
    """An implementation: a measure, and the unit of its thresholds.

    `demands_none`: without an operator, no row may break it. With an `expect` of its own it takes
    no operator; `severity` is the default of its rules.
    """

    metric: Metric
    columns: tuple[str, ...]
    rule: CheckSpec
    unit: Unit = Unit.NUMBER
    demands_none: bool = False
    expect: Expectation | None = None
    severity: Severity = Severity.ERROR


Reader = Callable[[Field, Mapping[str, Property], str], Custom | None]


def read_custom(field: Field, properties: list[Property], column: str = "") -> Custom | None:
    """Return the rule's implementation; None if it was refused.

    `column` is the name of the rule's property, "" for a rule of the whole object.
    """
    if field.choice("engine", ("lakegate",)) != "lakegate":
        return None
    stated = field.at("implementation")
    name = stated.choice("check", tuple(CHECKS))
    if name not in CHECKS:
        return None
    keys, read = CHECKS[name]
    own = [key for key in keys if not (key == "column" and column)]
    stated.limit_keys(("check", "unit", *own, *Operator))
    known = {inner.column.name: inner for found in properties for inner in found.walk()}
    return read(stated, known, column)


def _row_expression(stated: Field, known: Mapping[str, Property], column: str) -> Custom | None:
    sql = read_condition(stated, "expression").strip()
    return _of_rows(sql, (column,) if column else ()) if sql else None


def _column_pair(stated: Field, known: Mapping[str, Property], column: str) -> Custom | None:
    left, right = (_column(stated, key, known, column) for key in ("column", "other"))
    operator = stated.choice("operator", COMPARISONS)
    if not (left and right and operator):
        return None
    sql = f"{quoted(left.column.name)} {operator} {quoted(right.column.name)}"
    return _of_rows(sql, (left.column.name, right.column.name))


def _encoding(stated: Field, known: Mapping[str, Property], column: str) -> Custom | None:
    found = _column(stated, "column", known, column, ("string", "time"))
    if not found:
        return None
    return Custom(Metric.UNDECODED, (found.column.name,), Rule(), Unit.ROWS, demands_none=True)


def _of_column(metric: Metric, kinds: tuple[str, ...], unit: Unit = Unit.NUMBER) -> Reader:
    def read(stated: Field, known: Mapping[str, Property], column: str) -> Custom | None:
        found = _column(stated, "column", known, column, kinds)
        return Custom(metric, (found.column.name,), Rule(), unit) if found else None

    return read


def _quantile(stated: Field, known: Mapping[str, Property], column: str) -> Custom | None:
    found = _column(stated, "column", known, column, NUMERIC)
    share = stated.at("share").node.value
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        stated.refuse("must be a number from 0 to 1, such as 0.95", "share")
        return None
    text = Decimal(stated.at("share").node.text)
    return Custom(Metric.QUANTILE, (found.column.name,), Quantile(text)) if found else None


def _distinct(stated: Field, known: Mapping[str, Property], column: str) -> Custom | None:
    if column and stated.has("properties"):
        stated.refuse(
            "is for rules of the whole object: here it is the property itself", "properties"
        )
    listed = () if column else _listed(stated, "properties", known)
    columns = (column,) if column else tuple(found.column.name for found in listed)
    if not columns:
        stated.refuse("must list the properties that are counted together", "properties")
        return None
    return Custom(Metric.DISTINCT, columns, Rule())


def _reconcile(stated: Field, known: Mapping[str, Property], column: str) -> Custom | None:
    if column:
        stated.refuse("reconcile is about the whole file: put it at the schema object", "check")
    format_ = stated.choice("format", ("json", "csv"), default="json")
    sums = _listed(stated, "sums", known, NUMERIC)
    rule = Control(format_, tuple(found.column.name for found in sums))
    return Custom(Metric.CONTROL, (), rule, demands_none=True)


def _listed(
    stated: Field, key: str, known: Mapping[str, Property], kinds: tuple[str, ...] = ()
) -> list[Property]:
    """Return the columns that are listed under a key, without refused ones."""
    found: dict[str, Property] = {}
    for item in stated.at(key).items():
        name = item.node.text
        if name not in known or len(known[name].column.steps) > 1:
            item.refuse(f"{name!r} is not a column of this object{suggestion(name, known)}")
        elif kinds and known[name].column.kind not in ("", *kinds):
            item.refuse(f"{name!r} is {known[name].column.type}, and must be a number")
        elif name in found:
            item.refuse(f"{name!r} is listed twice")
        else:
            found[name] = known[name]
    return list(found.values())


def _drift(stated: Field, known: Mapping[str, Property], column: str) -> Custom | None:
    for operator in filter(stated.has, Operator):
        stated.refuse("says by `k` how far its measure may be off, and by no operator", operator)
    metric, limit = stated.choice("of", DRIFTING), _positive(stated, "k", _USUAL)
    if stated.has("share") and metric != Metric.QUANTILE:
        stated.refuse(f"belongs to a quantile, and not to {metric}", "share")
    if limit is None or metric not in DRIFTING:
        return None
    found = _drifting(Metric(metric), stated, known, column)
    if found is None:
        return None
    expect = Expectation(Operator.AT_MOST, limit, None, Unit.NUMBER)
    return replace(found, metric=Metric.DRIFT, expect=expect, severity=Severity.WARNING)


def _drifting(
    metric: Metric, stated: Field, known: Mapping[str, Property], column: str
) -> Custom | None:
    """Return the columns and the measure of a drift check."""
    if metric is Metric.ROWS:
        if stated.has("column") or column:
            stated.refuse("rowCount is of the whole file: write the rule under the object", "of")
            return None
        return Custom(metric, (), Drift(metric, Rule()))
    read = _quantile if metric is Metric.QUANTILE else _of_column(metric, _kinds(metric))
    found = read(stated, known, column)
    if found is None or not isinstance(found.rule, Rule | Quantile):
        return None
    return Custom(metric, found.columns, Drift(metric, found.rule))


def _kinds(metric: Metric) -> tuple[str, ...]:
    """Return the types of column that a metric applies to; () for all."""
    if metric is Metric.AGE:
        return _MOMENTS
    return NUMERIC if metric in OF_VALUES else ()


def _positive(stated: Field, key: str, usual: Decimal) -> Decimal | None:
    if not stated.has(key):
        return usual
    value = stated.at(key).node.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
        stated.refuse("must be a number above 0", key)
        return None
    return Decimal(stated.at(key).node.text)


def _of_rows(sql: str, columns: tuple[str, ...]) -> Custom:
    return Custom(Metric.BROKEN, columns, Condition(sql), Unit.ROWS, demands_none=True)


def _column(
    stated: Field,
    key: str,
    known: Mapping[str, Property],
    column: str,
    kinds: tuple[str, ...] = (),
) -> Property | None:
    """Return the column under a key, or the rule's own one; None if refused."""
    name = column if key == "column" and column else stated.required_text(key)
    found = known.get(name)
    if name and not found:
        stated.refuse(f"{name!r} is not a column of this object{suggestion(name, known)}", key)
    elif found and len(found.column.steps) > 1:
        stated.refuse(f"{name!r} lies within another column: only whole columns go here", key)
    elif found and kinds and found.column.kind not in ("", *kinds):
        stated.refuse(f"{name!r} is {found.column.type}, and must be {' or '.join(kinds)}", key)
    else:
        return found
    return None


CHECKS: Mapping[str, tuple[tuple[str, ...], Reader]] = {
    "rowExpression": (("expression",), _row_expression),
    "columnPair": (("column", "operator", "other"), _column_pair),
    "encoding": (("column",), _encoding),
    "sum": (("column",), _of_column(Metric.SUM, NUMERIC)),
    "mean": (("column",), _of_column(Metric.MEAN, NUMERIC)),
    "stddev": (("column",), _of_column(Metric.STDDEV, NUMERIC)),
    "quantile": (("column", "share"), _quantile),
    "distinctCount": (("properties",), _distinct),
    "reconcile": (("format", "sums"), _reconcile),
    "drift": (("of", "column", "share", "k"), _drift),
    "freshness": (("column",), _of_column(Metric.AGE, _MOMENTS, Unit.HOURS)),
}
