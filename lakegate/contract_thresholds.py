"""The operators and thresholds of a rule, as expectations."""

from decimal import Decimal
from math import inf, isfinite

from lakegate.contract_fields import Field
from lakegate.expectations import Expectation, Operator, Unit

NONE = Expectation(Operator.EQUAL, Decimal(0))
_RANGES = {Unit.ROWS: (0, 10**15), Unit.PERCENT: (0, 100)}
_BETWEEN = (Operator.BETWEEN, Operator.NOT_BETWEEN)


def read_expectation(field: Field, unit: Unit) -> Expectation:
    """The one operator of `field` with its thresholds in the unit; `NONE` where it was refused."""
    given = [operator for operator in Operator if field.has(operator)]
    if len(given) != 1:
        which = f"has {' and '.join(given)}" if given else "has none"
        field.refuse(f"{which} of the operators, and needs exactly one, such as mustBe: 0")
        return NONE
    operator = given[0]
    if operator in _BETWEEN:
        return _between(field.at(operator), operator, unit)
    threshold = _threshold(field.at(operator), unit)
    return NONE if threshold is None else Expectation(operator, threshold, None, unit)


def read_warning(given: Field, unit: Unit) -> Expectation | None:
    """The second expectation, under `warnUnless`: where it is not met, people are told.

    `warnUnless: {mustBeLessThan: 5}` tells them from five on. None where it is not given.
    """
    if not given.has("warnUnless"):
        return None
    given.at("warnUnless").limit_keys(tuple(Operator))
    return read_expectation(given.at("warnUnless"), unit)


def _between(field: Field, operator: Operator, unit: Unit) -> Expectation:
    items = list(field.items())
    ends = [end for end in (_threshold(item, unit) for item in items) if end is not None]
    if len(ends) == 2 and ends[0] < ends[1]:
        return Expectation(operator, ends[0], ends[1], unit)
    if len(ends) == len(items):
        field.refuse("must be two numbers, the smaller one first, as in [100, 2000]")
    return NONE


def _threshold(field: Field, unit: Unit) -> Decimal | None:
    """The field as a threshold, or None when it had to be refused."""
    value = field.node.value
    if unit is Unit.ANSWER and isinstance(value, bool):
        return Decimal(value)
    low, high = _RANGES.get(unit, (-inf, inf))
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        bounds = f" from {low} to {high:,}" if isfinite(high) else ""
        field.refuse(f"must be a number{bounds}")
    elif unit is Unit.ROWS and value != int(value):
        field.refuse("a number of rows is whole; for a share of them, add unit: percent")
    elif not isfinite(value):
        field.refuse("must be a finite number")
    else:
        return Decimal(value if isinstance(value, int) else field.node.text)
    return None
