"""The rules behind a check's measure: valid values, conditions, references, queries."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

_VALUES_SHOWN = 12


@dataclass(frozen=True)
class Rule:
    """The rule for a valid value: all given parts must hold, and nulls are never invalid.

    Literals are text that Spark's `CAST(… AS <column type>)` takes without loss. `pattern` is an
    ECMA-262 regular expression, found anywhere in the value (see `ecma_patterns.java_pattern`);
    `format` names one of `ecma_patterns.PATTERNS`. Lengths are in characters. Items are those of an
    array or a map, properties the fields of a struct that are not null. Only `Metric.MISSING` uses
    `missing_values`, where None means null.
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
    multiple_of: str | None = None
    format: str | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique_items: bool = False
    min_properties: int | None = None
    max_properties: int | None = None
    required_properties: tuple[str, ...] = ()

    @property
    def bounds(self) -> tuple[tuple[str, str], ...]:
        """Return the comparisons that hold for values out of range, as (operator, literal)."""
        every = (
            ("<", self.minimum),
            (">", self.maximum),
            ("<=", self.exclusive_minimum),
            (">=", self.exclusive_maximum),
        )
        return tuple((comparison, bound) for comparison, bound in every if bound is not None)

    @property
    def wording(self) -> str:
        """Return the rule in words: `one of EWR, JFK, LGA`."""
        return " and ".join(self._parts())

    def _parts(self) -> Iterable[str]:
        if self.valid_values:
            yield f"one of {listed(self.valid_values)}"
        if self.pattern is not None:
            yield f"like {self.pattern}"
        if self.format is not None:
            yield f"of the format {self.format}"
        between = self.minimum is not None and self.maximum is not None
        if between:
            yield f"between {self.minimum} and {self.maximum}"
        yield from _given(
            ("at least", None if between else self.minimum),
            ("above", self.exclusive_minimum),
            ("at most", None if between else self.maximum),
            ("below", self.exclusive_maximum),
            ("a multiple of", self.multiple_of),
        )
        yield from _sizes(self.min_length, self.max_length, "characters long")
        yield from _sizes(self.min_items, self.max_items, "items long")
        yield from _sizes(self.min_properties, self.max_properties, "properties large")
        if self.unique_items:
            yield "without an item twice"
        if self.required_properties:
            yield f"with {listed(self.required_properties)}"


@dataclass(frozen=True)
class Condition:
    """A condition in Spark SQL that every row must meet; as in SQL's CHECK, null is not false."""

    sql: str


@dataclass(frozen=True)
class Quantile:
    """The value below which that share (0 to 1) of a column's values lies."""

    share: Decimal


@dataclass(frozen=True)
class Reference:
    """Another table, `<namespace>.<table>`, and its columns that must have the check's values."""

    table: str
    columns: tuple[str, ...]

    @property
    def wording(self) -> str:
        """Return the reference in words: `tailnum of nyc.planes`."""
        return f"{', '.join(self.columns)} of {self.table}"


@dataclass(frozen=True)
class Query:
    """One SELECT that returns a number, or true or false, which count as 1 and 0."""

    sql: str


@dataclass(frozen=True)
class Control:
    """A control file beside the landed one: its number of rows, and sums of these columns.

    Its key is the landed object's with `.control.<format>` after it; the format is json or csv.
    """

    format: str = "json"
    sums: tuple[str, ...] = ()


def listed(values: Iterable[str | None]) -> str:
    """Return values as a text list, shortened if there are many."""
    words = ["null" if value is None else _visible(value) for value in values]
    rest = len(words) - _VALUES_SHOWN
    more = f" and {rest} more" if rest > 0 else ""
    return ", ".join(words[:_VALUES_SHOWN]) + more


def _given(*bounds: tuple[str, str | int | None]) -> Iterable[str]:
    return (f"{words} {bound}" for words, bound in bounds if bound is not None)


def _sizes(low: int | None, high: int | None, words: str) -> Iterable[str]:
    if low is not None and low == high:
        return [f"{low} {words}"]
    return (f"{bound} {words}" for bound in _given(("at least", low), ("at most", high)))


def _visible(value: str) -> str:
    return value if value and value == value.strip() and value.isprintable() else repr(value)
