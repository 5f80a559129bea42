"""Results of a comparison: figures, each with its origin, and charts. Pure values."""

from dataclasses import dataclass
from enum import StrEnum

from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)


class Kind(StrEnum):
    """Numbers, with a fraction or `WHOLE`; days and times; `WORDS`, drawn value by value.

    For `BYTES` and other single values, only nulls and distinct values are counted; columns with
    nested columns are `NESTED`, and only named.
    """

    NUMBER = "number"
    WHOLE = "whole"
    DAY = "day"
    TIME = "time"
    WORDS = "words"
    BYTES = "bytes"
    NESTED = "nested"


_KINDS: dict[type[IcebergType], Kind] = {
    **dict.fromkeys((IntegerType, LongType), Kind.WHOLE),
    **dict.fromkeys((FloatType, DoubleType, DecimalType), Kind.NUMBER),
    DateType: Kind.DAY,
    **dict.fromkeys((TimestampType, TimestamptzType), Kind.TIME),
    **dict.fromkeys((StringType, BooleanType), Kind.WORDS),
}


def kind_of(type_: IcebergType) -> Kind:
    """Return the kind of a column of an Iceberg type."""
    if not type_.is_primitive:
        return Kind.NESTED
    return _KINDS.get(type(type_), Kind.BYTES)


def common(kinds: frozenset[Kind]) -> Kind | None:
    """Return the kind in which both sides' values can be drawn; None without one."""
    if kinds == {Kind.WHOLE, Kind.NUMBER}:
        return Kind.NUMBER
    if kinds == {Kind.DAY, Kind.TIME}:
        return Kind.TIME
    return next(iter(kinds)) if len(kinds) == 1 else None


class Origin(StrEnum):
    """The origin of a figure, in words."""

    ROWS = "counted in all rows"
    MANIFESTS = "from the statistics of all data files"
    BOUND = "a bound: statistics of data files cut long texts, and know of no deleted rows"
    SAMPLE = "in the sample alone"
    ESTIMATE = "estimated, from all rows"


@dataclass(frozen=True)
class Figure:
    """A number, or a value as text; None if unknown."""

    value: int | str | None
    origin: Origin


@dataclass(frozen=True)
class Profile:
    """One column on one side; without bounds if its values are hidden.

    `rows` is the number of rows. The `nans` were counted in the rows that were `read`, as the chart
    was.
    """

    type: str
    rows: int
    read: int
    nulls: Figure
    distinct: Figure
    nans: int = 0
    smallest: Figure | None = None
    largest: Figure | None = None


@dataclass(frozen=True)
class Picture:
    """The distribution of values: for each label, its share of each side's values.

    The labels of an ordered kind are bins: the first and the last hold the values outside. A side
    without values has no shares.
    """

    kind: Kind
    labels: tuple[str, ...]
    file: tuple[float, ...] = ()
    main: tuple[float, ...] = ()


@dataclass(frozen=True)
class Column:
    """One column on both sides, None on a side that lacks it.

    `note` says why there is no chart, or nothing but the name.
    """

    name: str
    file: Profile | None = None
    main: Profile | None = None
    picture: Picture | None = None
    note: str = ""


@dataclass(frozen=True)
class Side:
    """The basis of one side's figures: `read` of the `rows`, from so many of the `files`."""

    rows: int
    read: int
    files: int
    files_read: int
    whole: bool


@dataclass(frozen=True)
class Comparison:
    """The new rows beside main; `main` is None if main lacks the table."""

    file: Side
    main: Side | None
    columns: tuple[Column, ...]
