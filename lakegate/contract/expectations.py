"""Expectations of measured numbers, and their wording."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from math import isfinite

Number = int | float | Decimal


class Operator(StrEnum):
    """The comparison of a number with its thresholds. Both between-operators include their ends."""

    EQUAL = "mustBe"
    NOT_EQUAL = "mustNotBe"
    MORE = "mustBeGreaterThan"
    AT_LEAST = "mustBeGreaterOrEqualTo"
    LESS = "mustBeLessThan"
    AT_MOST = "mustBeLessOrEqualTo"
    BETWEEN = "mustBeBetween"
    NOT_BETWEEN = "mustNotBeBetween"


class Unit(StrEnum):
    """The unit of the thresholds: a number of rows, a percentage of the rows, something else.

    `NUMBER` is in the column's own unit; `ANSWER` is a query's, where 1 is also true and 0 false;
    `HOURS` is an age.
    """

    ROWS = "rows"
    PERCENT = "percent"
    NUMBER = "number"
    ANSWER = "answer"
    HOURS = "hours"


@dataclass(frozen=True)
class Expectation:
    """An expectation of a measured number. Only the between-operators have a `high`."""

    operator: Operator
    threshold: Decimal
    high: Decimal | None = None
    unit: Unit = Unit.ROWS

    def met(self, value: Number | None, rows: int) -> bool:
        """Return if the value meets the expectation; percentages are of `rows`.

        No row of no rows is 0 percent. A missing value, NaN and infinities never meet it. Floats
        are compared by the 15 digits that every float holds, the thresholds' too: 0.1 + 0.2 is 0.3.
        """
        if value is None or not isfinite(value):
            return False
        limits = self.threshold, self.high or Decimal(0)
        if isinstance(value, float):
            measured, low, high = map(_of_15_digits, (Decimal(repr(value)), *limits))
        else:
            measured, low, high = map(Fraction, (value, *limits))
        if self.unit is Unit.PERCENT:
            measured = 100 * measured / rows if rows else Fraction(0)
        return _COMPARE[self.operator](measured, low, high)

    @property
    def wording(self) -> str:
        """Return the expectation in words: `0 rows`, `at most 0.5 % of rows`."""
        template = _WORDING[self.operator]
        few = "less" if self.unit in (Unit.PERCENT, Unit.NUMBER, Unit.ANSWER) else "fewer"
        last = self.threshold if self.high is None else self.high
        numbers = template.format(few=few, low=_number(self.threshold), high=_number(last))
        return f"{numbers} {_unit(self.unit, last)}".rstrip()

    def found(self, value: Number | None, rows: int) -> str:
        """Return a measured number in this expectation's unit: `1.43 % of rows (12 of 842)`."""
        if value is None:
            return "no value"
        if self.unit is not Unit.PERCENT:
            return f"{_measured(value)} {_unit(self.unit, value)}".rstrip()
        share = _number(Decimal(f"{100 * value / rows if rows else 0:.3g}"))
        return f"{share} % of rows ({value:,} of {rows:,})"


NONE = Expectation(Operator.EQUAL, Decimal(0))


def _of_15_digits(number: Decimal) -> Fraction:
    return Fraction(f"{number:.15g}")


_COMPARE: dict[Operator, Callable[[Fraction, Fraction, Fraction], bool]] = {
    Operator.EQUAL: lambda value, low, _: value == low,
    Operator.NOT_EQUAL: lambda value, low, _: value != low,
    Operator.MORE: lambda value, low, _: value > low,
    Operator.AT_LEAST: lambda value, low, _: value >= low,
    Operator.LESS: lambda value, low, _: value < low,
    Operator.AT_MOST: lambda value, low, _: value <= low,
    Operator.BETWEEN: lambda value, low, high: low <= value <= high,
    Operator.NOT_BETWEEN: lambda value, low, high: not low <= value <= high,
}

_WORDING = {
    Operator.EQUAL: "{low}",
    Operator.NOT_EQUAL: "anything but {low}",
    Operator.MORE: "more than {low}",
    Operator.AT_LEAST: "at least {low}",
    Operator.LESS: "{few} than {low}",
    Operator.AT_MOST: "at most {low}",
    Operator.BETWEEN: "between {low} and {high}",
    Operator.NOT_BETWEEN: "{few} than {low} or more than {high}",
}


def _measured(value: Number) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.6g}" if isinstance(value, float) else _number(value)


def _number(value: Decimal) -> str:
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _unit(unit: Unit, amount: Number) -> str:
    one = amount == 1
    match unit:
        case Unit.PERCENT:
            return "% of rows"
        case Unit.ROWS:
            return "row" if one else "rows"
        case Unit.HOURS:
            return "hour" if one else "hours"
        case Unit.NUMBER | Unit.ANSWER:
            return ""
