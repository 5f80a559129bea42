"""Read a column's statistics from the manifests of an Iceberg table, without reading rows.

Each data file's statistics have the nulls and the smallest and largest value (Iceberg's table
specification, "Data File Fields"); bounds of texts and bytes may be cut, the others are existing
values. NaN is in no bound.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from struct import calcsize, unpack
from typing import Any

import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.types import (
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    TimestampType,
    TimestamptzType,
)

# A widened column has bounds in its earlier, narrower type.
_NARROWER: dict[type, PrimitiveType] = {LongType: IntegerType(), DoubleType: FloatType()}
# The notation of values of a fixed size (Iceberg's table specification, "Binary single-value
# serialization"), in the letters of Python's `struct`.
_FORMATS: dict[type, str] = {
    **dict.fromkeys((IntegerType, DateType), "i"),
    **dict.fromkeys((LongType, TimestampType, TimestamptzType), "q"),
    FloatType: "f",
    DoubleType: "d",
}


@dataclass(frozen=True)
class Stated:
    """Statistics of a column in some data files: None if a file lacks them, or if all is null."""

    nulls: int | None = None
    smallest: Any = None
    largest: Any = None


def stated(column: NestedField, files: Sequence[DataFile]) -> Stated:
    """Return the data files' statistics of a column of a simple type.

    The values are Iceberg's own: a date is its days, a timestamp its microseconds since 1970. They
    include rows that delete files remove.
    """
    id_ = column.field_id
    nulls = [(file.null_value_counts or {}).get(id_) for file in files]
    counts = [many for many in nulls if many is not None]
    lower = _bounds(column, files, lambda file: file.lower_bounds)
    upper = _bounds(column, files, lambda file: file.upper_bounds)
    return Stated(
        nulls=sum(counts) if len(counts) == len(files) else None,
        smallest=min(_values(column.field_type, lower), default=None),
        largest=max(_values(column.field_type, upper), default=None),
    )


def as_arrow(value: Any, type_: pa.DataType) -> pa.Scalar:
    """Return a value of Iceberg's own as its column's Arrow type."""
    if value is None:
        return pa.scalar(None, type_)
    if pa.types.is_date32(type_):
        return pa.array([value], pa.int32()).cast(type_)[0]
    if pa.types.is_timestamp(type_):
        return pa.array([value], pa.int64()).cast(type_)[0]
    return pa.scalar(value, type_)


def _bounds(
    column: NestedField,
    files: Iterable[DataFile],
    bounds: Callable[[DataFile], dict[int, bytes] | None],
) -> list[bytes]:
    """Return one bound of each file with values; none if one of these files lacks it."""
    found = []
    for file in files:
        written = (bounds(file) or {}).get(column.field_id)
        if written is not None:
            found.append(written)
        elif not _is_empty(column.field_id, file):
            return []
    return found


def _values(type_: Any, written: Sequence[bytes]) -> Sequence[Any]:
    """Return the decoded values, in one step if possible: a table may have thousands of files.

    No value at all if one is NaN, which is no bound.
    """
    format_ = _FORMATS.get(type(type_))
    if format_ and {len(each) for each in written} == {calcsize(format_)}:
        values: Sequence[Any] = unpack(f"<{len(written)}{format_}", b"".join(written))
    else:
        values = [_value(type_, each) for each in written]
    return () if any(value != value for value in values) else values  # noqa: PLR0124 - NaN alone


def _value(type_: Any, written: bytes) -> Any:
    narrower = _NARROWER.get(type(type_))
    return from_bytes(narrower if narrower and len(written) == 4 else type_, written)


def _is_empty(id_: int, file: DataFile) -> bool:
    """Return if the file holds only nulls and NaN in the column."""
    nulls, nans = ((counts or {}).get(id_, 0) for counts in _counts(file))
    return bool(nulls + nans >= file.record_count)


def _counts(file: DataFile) -> tuple[dict[int, int] | None, dict[int, int] | None]:
    return file.null_value_counts, file.nan_value_counts
