"""Read the operators and thresholds of a rule, as expectations."""

from decimal import Decimal
from math import inf, isfinite

from lakegate.contract.expectations import NONE, Expectation, Operator, Unit
from lakegate.contract.text.fields import Field

_RANGES = {Unit.ROWS: (0, 10**15), Unit.PERCENT: (0, 100)}
_BETWEEN = (Operator.BETWEEN, Operator.NOT_BETWEEN)


def read_unit(field: Field) -> Unit:
    """Return the unit of thresholds of rows: their number, unless a percentage is asked for."""
    return Unit(field.choice("unit", (Unit.ROWS, Unit.PERCENT), default=Unit.ROWS))


def read_expectation(field: Field, unit: Unit) -> Expectation:
    """Return the one operator of `field` with its thresholds; `NONE` if it was refused."""
    given = [operator for operator in Operator if field.has(operator)]
    if len(given) != 1:
        which = f"has {' and '.join(given)}" if given else "has none"
        field.refuse(f"{which} of the operators, and needs exactly one, such as mustBe: 0")
        return NONE
    operator = given[0]
    if operator in _BETWEEN:
        return _read_range(field.at(operator), operator, unit)
    threshold = _threshold(field.at(operator), unit)
    return NONE if threshold is None else Expectation(operator, threshold, None, unit)


def read_second(given: Field, key: str, unit: Unit) -> Expectation | None:
    """Return the expectation among options under a key; None if it is not given.

    `warnUnless: {mustBeLessThan: 5}` warns from five on.
    """
    if not given.has(key):
        return None
    given.at(key).limit_keys(tuple(Operator))
    return read_expectation(given.at(key), unit)


def _read_range(field: Field, operator: Operator, unit: Unit) -> Expectation:
    items = list(field.items())
    ends = [end for end in (_threshold(item, unit) for item in items) if end is not None]
    if len(ends) == 2 and ends[0] < ends[1]:
        return Expectation(operator, ends[0], ends[1], unit)
    if len(ends) == len(items):
        field.refuse("must be two numbers, the smaller one first, as in [100, 2000]")
    return NONE


def _threshold(field: Field, unit: Unit) -> Decimal | None:
    """Return the field as a threshold, None if it was refused."""
    if unit is Unit.ANSWER and isinstance(field.node.value, bool):
        return Decimal(field.node.value)
    low, high = _RANGES.get(unit, (-inf, inf))
    bounds = f" from {low} to {high:,}" if isfinite(high) else ""
    number = field.number(lambda value: low <= value <= high, f"must be a number{bounds}")
    if number is None:
        return None
    if not number.is_finite():
        field.refuse("must be a finite number")
    elif unit is Unit.ROWS and number != int(number):
        field.refuse("a number of rows is whole; for a share of them, add unit: percent")
    else:
        return number
    return None
