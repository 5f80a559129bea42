"""What the manifests of an Iceberg table say of a column, with no row read.

Each data file's statistics name its nulls and its smallest and largest value (Iceberg's table
specification, "Data File Fields"); of texts and bytes the bounds may be cut, of the others they are
values that are there. NaN is in no bound.
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

# A wider type's column has bounds as the narrower one wrote them.
_NARROWER: dict[type, PrimitiveType] = {LongType: IntegerType(), DoubleType: FloatType()}
# How values of a fixed size are written (Iceberg's table specification, "Binary single-value
# serialization"), in the letters of Python's `struct`.
_FORMATS: dict[type, str] = {
    **dict.fromkeys((IntegerType, DateType), "i"),
    **dict.fromkeys((LongType, TimestampType, TimestamptzType), "q"),
    FloatType: "f",
    DoubleType: "d",
}


@dataclass(frozen=True)
class Stated:
    """A column in some data files: None for what not all of them say, or where all is null."""

    nulls: int | None = None
    smallest: Any = None
    largest: Any = None


def stated(column: NestedField, files: Sequence[DataFile]) -> Stated:
    """What the data files' statistics say of a column of a simple type.

    The values are Iceberg's own: a date is its days, a timestamp its microseconds since 1970. Rows
    that delete files name are among them.
    """
    id_ = column.field_id
    nulls = [(file.null_value_counts or {}).get(id_) for file in files]
    told = [many for many in nulls if many is not None]
    lower = _bounds(column, files, lambda file: file.lower_bounds)
    upper = _bounds(column, files, lambda file: file.upper_bounds)
    return Stated(
        nulls=sum(told) if len(told) == len(files) else None,
        smallest=min(_values(column.field_type, lower), default=None),
        largest=max(_values(column.field_type, upper), default=None),
    )


def as_arrow(value: Any, type_: pa.DataType) -> pa.Scalar:
    """A value of Iceberg's own as the Arrow type that its column has."""
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
    """One bound of each file that has values; none at all where one of these files has none."""
    found = []
    for file in files:
        written = (bounds(file) or {}).get(column.field_id)
        if written is not None:
            found.append(written)
        elif not _is_empty(column.field_id, file):
            return []
    return found


def _values(type_: Any, written: Sequence[bytes]) -> Sequence[Any]:
    """What was written, all at once where that can be: a table may have thousands of files.

    No value at all where one is NaN, which is no bound.
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
    """Whether the file holds nothing but nulls and NaN in the column."""
    nulls, nans = ((counts or {}).get(id_, 0) for counts in _counts(file))
    return bool(nulls + nans >= file.record_count)


def _counts(file: DataFile) -> tuple[dict[int, int] | None, dict[int, int] | None]:
    return file.null_value_counts, file.nan_value_counts
