"""What a contract asks of the data: a measure, the rule behind it, and what it must be."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

_VALUES_SHOWN = 12
_IN_TABLE = " in the whole table"


class Metric(StrEnum):
    """What is counted, with the Open Data Contract Standard's names. All count rows.

    `NULL` rows with a null; `MISSING` rows whose value is one of the rule's `missing_values`;
    `INVALID` rows whose value is not null and breaks the rule; `DUPLICATE` rows beyond the first
    with the same key, where a key with a null in it is no key; `ROWS` all rows.
    """

    NULL = "nullValues"
    MISSING = "missingValues"
    INVALID = "invalidValues"
    DUPLICATE = "duplicateValues"
    ROWS = "rowCount"


class Scope(StrEnum):
    """Which rows a check looks at: the file's own, or also those that the table has already."""

    FILE = "file"
    TABLE = "table"


class Severity(StrEnum):
    """What a check that is not met does: `ERROR` rejects the file, the others only tell."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Operator(StrEnum):
    """How a count is compared with its thresholds. Both between-operators include their ends."""

    EQUAL = "mustBe"
    NOT_EQUAL = "mustNotBe"
    MORE = "mustBeGreaterThan"
    AT_LEAST = "mustBeGreaterOrEqualTo"
    LESS = "mustBeLessThan"
    AT_MOST = "mustBeLessOrEqualTo"
    BETWEEN = "mustBeBetween"
    NOT_BETWEEN = "mustNotBeBetween"


class Unit(StrEnum):
    """What the thresholds mean: a number of rows, or a share of all rows in percent."""

    ROWS = "rows"
    PERCENT = "percent"


@dataclass(frozen=True)
class Expectation:
    """What a measured number of rows must be. `high` is given for the between-operators only."""

    operator: Operator
    threshold: Decimal
    high: Decimal | None = None
    unit: Unit = Unit.ROWS

    def met(self, value: int, rows: int) -> bool:
        """Whether `value` rows of all `rows` are as expected; no row of no rows is 0 percent."""
        measured = Fraction(value)
        if self.unit is Unit.PERCENT:
            measured = Fraction(100 * value, rows) if rows else Fraction(0)
        low, high = Fraction(self.threshold), Fraction(self.high or 0)
        return _COMPARE[self.operator](measured, low, high)

    @property
    def wording(self) -> str:
        """The expectation for people: `0 rows`, `at most 0.5 % of rows`."""
        template = _WORDING[self.operator]
        few = "fewer" if self.unit is Unit.ROWS else "less"
        last = self.threshold if self.high is None else self.high
        numbers = template.format(few=few, low=_number(self.threshold), high=_number(last))
        return f"{numbers} {_unit(self.unit, last)}"

    def found(self, value: int, rows: int) -> str:
        """A measured number of rows in this expectation's unit: `1.43 % of rows (12 of 842)`."""
        if self.unit is Unit.ROWS:
            return f"{value:,} {_unit(self.unit, Decimal(value))}"
        share = _number(Decimal(f"{100 * value / rows if rows else 0:.3g}"))
        return f"{share} % of rows ({value:,} of {rows:,})"


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


@dataclass(frozen=True)
class Rule:
    """What a value must be to be valid; everything given must hold, and nulls are never invalid.

    Literals are text that Spark's `CAST(… AS <column type>)` takes without loss. `pattern` is an
    ECMA-262 regular expression, found anywhere in the value (see `patterns.java_pattern`). Lengths
    are in characters. `missing_values` serves `Metric.MISSING` alone, and there None means null.
    """

    valid_values: tuple[str, ...] = ()
    pattern: str | None = None
    minimum: str | None = None
    maximum: str | None = None
    exclusive_minimum: str | None = None
    exclusive_maximum: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    missing_values: tuple[str | None, ...] = ()

    @property
    def wording(self) -> str:
        """What a valid value is, for people: `one of EWR, JFK, LGA`."""
        return " and ".join(self._parts())

    def _parts(self) -> Iterable[str]:
        if self.valid_values:
            yield f"one of {_listed(self.valid_values)}"
        if self.pattern is not None:
            yield f"like {self.pattern}"
        between = self.minimum is not None and self.maximum is not None
        if between:
            yield f"between {self.minimum} and {self.maximum}"
        yield from _given(
            ("at least", None if between else self.minimum),
            ("above", self.exclusive_minimum),
            ("at most", None if between else self.maximum),
            ("below", self.exclusive_maximum),
        )
        if self.min_length is not None and self.min_length == self.max_length:
            yield f"{self.min_length} characters long"
        else:
            lengths = ("at least", self.min_length), ("at most", self.max_length)
            yield from (f"{words} characters long" for words in _given(*lengths))


def _given(*bounds: tuple[str, str | int | None]) -> Iterable[str]:
    return (f"{words} {bound}" for words, bound in bounds if bound is not None)


@dataclass(frozen=True)
class Check:
    """One measure compared with one expectation.

    `id` is unique in its contract and stable. `columns` is empty for `Metric.ROWS`, and has more
    than one name only for `Metric.DUPLICATE`. `description` is the data owner's, or else `measure`.
    With `Scope.TABLE`, `Metric.ROWS` counts the whole table's rows after the append, and
    `Metric.DUPLICATE` the file's rows that repeat a key of the table or of an earlier row.
    """

    id: str
    metric: Metric
    columns: tuple[str, ...]
    rule: Rule
    expect: Expectation
    severity: Severity = Severity.ERROR
    description: str = ""
    scope: Scope = Scope.FILE

    @property
    def measure(self) -> str:
        """What is counted, for people: `rows whose origin is not one of EWR, JFK, LGA`."""
        return measure(self.metric, self.columns, self.rule) + self._where

    @property
    def expected(self) -> str:
        """The expectation for people: `0 rows in the whole table`."""
        return self.expect.wording + self._where

    def found(self, value: int, rows: int) -> str:
        """A measured number of rows, `rows` being all of the file's: `1 row in the whole table`."""
        return self.expect.found(value, rows) + self._where

    @property
    def _where(self) -> str:
        return _IN_TABLE if self.scope is Scope.TABLE else ""


def measure(metric: Metric, columns: tuple[str, ...], rule: Rule) -> str:
    """What a metric counts in a file: `rows whose origin is not one of EWR, JFK, LGA`."""
    names = ", ".join(columns)
    match metric:
        case Metric.NULL:
            return f"rows without {names}"
        case Metric.MISSING:
            return f"rows whose {names} is one of {_listed(rule.missing_values)}"
        case Metric.INVALID:
            return f"rows whose {names} is not {rule.wording}"
        case Metric.DUPLICATE:
            return f"rows that repeat another row's {names}"
        case Metric.ROWS:
            return "rows"


def _listed(values: Iterable[str | None]) -> str:
    words = ["null" if value is None else _visible(value) for value in values]
    rest = len(words) - _VALUES_SHOWN
    more = f" and {rest} more" if rest > 0 else ""
    return ", ".join(words[:_VALUES_SHOWN]) + more


def _visible(value: str) -> str:
    return value if value and value == value.strip() and value.isprintable() else repr(value)


def _number(value: Decimal) -> str:
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _unit(unit: Unit, amount: Decimal) -> str:
    if unit is Unit.PERCENT:
        return "% of rows"
    return "row" if amount == 1 else "rows"
