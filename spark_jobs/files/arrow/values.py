"""Columns of decoded Arrow data: their values, statistics and sums. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakegate.contract.columns import ITEM, KEY, VALUE, Column
from spark_jobs.files.arrow.types import PLAIN, type_of
from spark_jobs.schema.types import digits

FLOATING, INTEGERS = ("float", "double"), ("int", "bigint")
_COMPARED_AS = {"date": pa.int32(), "timestamp": pa.int64(), "timestamp_ntz": pa.int64()}
_LARGEST_SUM, _LARGEST_INTEGER = 10**38, 1 << 63


@dataclass(frozen=True)
class ColumnStatistics:
    """A column's statistics as Iceberg's manifests hold them: its rows, its nulls, its extremes.

    `low` and `high` leave out nulls and NaN, and are None without another value. Dates are days and
    timestamps microseconds since 1970. `nans` is None for types without NaN. A zero is -0.0 as
    `low` and 0.0 as `high`, because Iceberg orders them.
    """

    values: int
    nulls: int
    nans: int | None
    low: Any | None
    high: Any | None

    def __add__(self, other: "ColumnStatistics") -> "ColumnStatistics":
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        nans = None if self.nans is None or other.nans is None else self.nans + other.nans
        low, high = min(lows, default=None), max(highs, default=None)
        return ColumnStatistics(
            self.values + other.values, self.nulls + other.nulls, nans, low, high
        )


@dataclass(frozen=True)
class Values:
    """A column's values, with dates as days and timestamps as microseconds since 1970.

    `around` is the struct around it, if there is one.
    """

    column: Column
    array: pa.ChunkedArray
    statistics: ColumnStatistics
    around: pa.ChunkedArray | None = None

    @property
    def nulls(self) -> int:
        """Return the number of nulls, each of which a struct around it holds."""
        return self.statistics.nulls - (self.around.null_count if self.around is not None else 0)


@dataclass(frozen=True)
class Total:
    """A sum of so many values, in units of the last digit; no order of addition exceeds `bound`."""

    units: int
    values: int
    bound: int

    def __add__(self, other: "Total") -> "Total":
        return Total(self.units + other.units, self.values + other.values, self.bound + other.bound)

    @property
    def is_sure(self) -> bool:
        """Return if no order of addition exceeds the 38 digits that Spark adds up."""
        return self.bound < _LARGEST_SUM

    def sum(self, places: int) -> Decimal | None:
        """Return the sum of numbers with so many decimal places; None without a value."""
        units = tuple(map(int, str(abs(self.units))))
        return Decimal((int(self.units < 0), units, -places)) if self.values else None

    def mean(self, places: int) -> float | None:
        """Return the mean as Spark rounds it: the sum to a double, and then the quotient."""
        return self.units / 10**places / self.values if self.values else None


def is_plain(column: Column) -> bool:
    """Return if this is a column with a single value a row, in the table or in structs."""
    return is_single(column) and (column.type in PLAIN or is_decimal(column))


def is_single(column: Column) -> bool:
    """Return if a row has the column once: it lies within no list and no map."""
    return not {ITEM, KEY, VALUE} & {*column.steps[1:]}


def within_structs(
    column: Column, array: pa.ChunkedArray
) -> tuple[pa.ChunkedArray, pa.ChunkedArray | None]:
    """Return a single column within its table's column, and the struct around it, if any."""
    around = None
    for step in column.steps[1:]:
        around, array = array, pc.struct_field(array, [step])
    return array, around


def missing(array: pa.ChunkedArray, around: pa.ChunkedArray | None) -> pa.ChunkedArray:
    """Return a mask of the nulls that are there themselves: a struct around them is, too."""
    nulls = pc.is_null(array)
    return nulls if around is None else pc.and_(nulls, pc.is_valid(around))


def statistics(column: Column, array: pa.ChunkedArray) -> ColumnStatistics:
    """Return the statistics of a plain column within its table's column, whose texts are UTF-8."""
    inner, _ = within_structs(column, array)
    return _statistics(column, inner.cast(arrow_type(column)))


def read_values(column: Column, array: pa.ChunkedArray) -> Values | None:
    """Return a column's values; None if some are no valid UTF-8."""
    array, around = within_structs(column, array)
    if not is_decodable(array):
        return None
    plain = array.cast(arrow_type(column))
    return Values(column, plain, _statistics(column, plain), around)


def is_decodable(array: pa.ChunkedArray) -> bool:
    """Return if texts are valid UTF-8, as all other values are."""
    try:
        if pa.types.is_string(array.type):
            array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def is_addable(column: Column) -> bool:
    """Return if `total` takes this plain column: floats have sums that depend on their order."""
    return column.type in INTEGERS or is_decimal(column)


def without_negative_zero(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return floats with 0.0 in place of each -0.0, which Arrow otherwise tells apart in sets."""
    return pc.add(array, pa.scalar(0.0, array.type))


def scale(column: Column) -> int:
    """Return a decimal's digits after the point, 0 for an integer."""
    return digits(column.type)[1] if is_decimal(column) else 0


def _statistics(column: Column, array: pa.ChunkedArray) -> ColumnStatistics:
    floating = column.type in FLOATING
    nans = trues(pc.is_nan(array)) if floating else 0
    low = high = None
    if nans + array.null_count < len(array):
        low, high = pc.min_max(array).as_py().values()
    if floating and low is not None:
        low, high = low or -0.0, high or 0.0
    return ColumnStatistics(len(array), array.null_count, nans if floating else None, low, high)


def arrow_type(column: Column) -> pa.DataType:
    """Return the type in which a plain column's values are compared."""
    return _COMPARED_AS.get(column.type, type_of(column))


def is_decimal(column: Column) -> bool:
    """Return if the column holds decimals."""
    return column.type.startswith("decimal(")


def trues(mask: pa.ChunkedArray) -> int:
    """Return how many values of a mask are true."""
    return int(pc.sum(mask, min_count=0).as_py())


def numbered(columns: Iterable[pa.Array], rows: int) -> np.ndarray[Any, Any]:
    """Return a number of each row's values together, from 0: the same one for the same values."""
    numbers = np.zeros(rows, np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        numbers = numbers * len(encoded.dictionary) + encoded.indices.to_numpy()
        _, numbers = np.unique(numbers, return_inverse=True)
    return numbers


def total(values: Values) -> Total:
    """Return the sum of integers or decimals; it is right if it `is_sure`."""
    summary, after = values.statistics, scale(values.column)
    present = summary.values - summary.nulls
    ends = [end for end in (summary.low, summary.high) if end is not None]
    bound = present * max((abs(units_of(end, after)) for end in ends), default=0)
    if not present or bound >= _LARGEST_SUM:
        return Total(0, present, bound)
    array = values.array
    if values.column.type in INTEGERS and bound >= _LARGEST_INTEGER:
        array = array.cast(pa.decimal128(19, 0))  # a sum of integers would wrap around
    return Total(units_of(pc.sum(array).as_py(), after), present, bound)


def units_of(number: int | Decimal, after: int) -> int:
    """Return a number of so many digits after the point in units of the last one."""
    if isinstance(number, int):
        return number
    sign, written, exponent = number.as_tuple()
    units = int("".join(map(str, written))) * 10 ** (after + int(exponent))
    return -units if sign else units
