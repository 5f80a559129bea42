"""What kind of values a column has: what can be counted, shown and drawn of them. Pure."""

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
