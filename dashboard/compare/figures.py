"""What a comparison tells: figures, each with where it is from, and pictures. Pure values."""

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

# What kind of values a column has: what can be counted, shown and drawn of them. Pure.


class Kind(StrEnum):
    """Numbers, with a fraction or `WHOLE`; days and times; `WORDS`, drawn value by value.

    Of `BYTES`, and of whatever else is a single value, only nulls and different values are counted;
    what has columns within it is `NESTED`, and only named.
    """

    NUMBER = "number"
    WHOLE = "whole"
    DAY = "day"
    TIME = "time"
    WORDS = "words"
    BYTES = "bytes"
    NESTED = "nested"

    @property
    def in_order(self) -> bool:
        """Whether the values lie on a line, and are drawn in bins."""
        return self in (Kind.NUMBER, Kind.WHOLE, Kind.DAY, Kind.TIME)


_KINDS: dict[type[IcebergType], Kind] = {
    IntegerType: Kind.WHOLE,
    LongType: Kind.WHOLE,
    FloatType: Kind.NUMBER,
    DoubleType: Kind.NUMBER,
    DecimalType: Kind.NUMBER,
    DateType: Kind.DAY,
    TimestampType: Kind.TIME,
    TimestamptzType: Kind.TIME,
    StringType: Kind.WORDS,
    BooleanType: Kind.WORDS,
}
_WIDER = (frozenset({Kind.WHOLE, Kind.NUMBER}), frozenset({Kind.DAY, Kind.TIME}))
_WIDEST = (Kind.NUMBER, Kind.TIME)


def kind_of(type_: IcebergType) -> Kind:
    """The kind of a column of Iceberg's type."""
    if not type_.is_primitive:
        return Kind.NESTED
    return _KINDS.get(type(type_), Kind.BYTES)


def common(kinds: frozenset[Kind]) -> Kind | None:
    """The kind in which both sides' values can be drawn together; None where there is none."""
    if len(kinds) == 1:
        return next(iter(kinds))
    return dict(zip(_WIDER, _WIDEST, strict=True)).get(kinds)


class Origin(StrEnum):
    """Where a figure is from, in the words that explain it."""

    ROWS = "counted in all rows"
    MANIFESTS = "from the statistics of all data files"
    BOUND = "a bound: statistics of data files cut long texts, and know of no deleted rows"
    SAMPLE = "in the sample alone"
    ESTIMATE = "estimated, from all rows"


@dataclass(frozen=True)
class Figure:
    """A number, or a value as text; None where there is none."""

    value: int | str | None
    origin: Origin


@dataclass(frozen=True)
class Profile:
    """One column on one side; where its values are not to be shown it has no ends.

    `rows` is how many there are. The `nans` were counted in those that were `read`, as the picture
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
    """How the values lie: for each label, the share that it has of each side's values.

    The labels of a kind that is in order are bins: the first and the last are what lies beyond. A
    side without a value has no shares.
    """

    kind: Kind
    labels: tuple[str, ...]
    file: tuple[float, ...] = ()
    main: tuple[float, ...] = ()


@dataclass(frozen=True)
class Column:
    """One column on both sides, None on a side that has it not.

    `note` says why there is no picture, or nothing but the name.
    """

    name: str
    file: Profile | None = None
    main: Profile | None = None
    picture: Picture | None = None
    note: str = ""


@dataclass(frozen=True)
class Side:
    """What one side's figures stand on.

    Where `deletes`, some of the `rows` were deleted since they were written: only when all of them
    are `whole`ly read are those left out.
    """

    rows: int
    read: int
    files: int
    files_read: int
    whole: bool
    deletes: bool = False


@dataclass(frozen=True)
class Comparison:
    """The new rows beside main; `main` is None where main has no such table."""

    file: Side
    main: Side | None
    columns: tuple[Column, ...]
