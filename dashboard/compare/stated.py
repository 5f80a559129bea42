"""Figures that manifests state.

They include rows that delete files remove, and no NaN; bounds of texts and bytes may be cut.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField


def stated_nulls(column: NestedField, files: Sequence[DataFile]) -> int | None:
    """Return the number of nulls in the files; None if a file lacks it."""
    counts = [_figure(file.null_value_counts, column) for file in files]
    return None if None in counts else sum(counts)


def stated_ends(column: NestedField, files: Sequence[DataFile]) -> list[pa.Scalar]:
    """Return the smallest and the largest value; null without values or if a file lacks them."""
    filled = [file for file in files if not _is_empty(column, file)]
    type_ = Schema(column).as_arrow().field(0).type
    lower = _values(column, type_, [_figure(file.lower_bounds, column) for file in filled])
    upper = _values(column, type_, [_figure(file.upper_bounds, column) for file in filled])
    return [pc.min_max(lower)["min"], pc.min_max(upper)["max"]]


def _values(column: NestedField, type_: pa.DataType, written: Sequence[Any]) -> pa.Array:
    """Return decoded bounds; none if one of them is missing, or NaN, which is no bound.

    Values of a fixed size are decoded in one step, as a table may have thousands of files: Arrow
    writes them as Iceberg does. A widened column has bounds in its earlier, narrower type.
    """
    if None in written:
        return pa.nulls(0, type_)
    if pa.types.is_primitive(type_) and {len(each) for each in written} == {type_.bit_width // 8}:
        buffers = [None, pa.py_buffer(b"".join(written))]
        values = pa.Array.from_buffers(type_, len(written), buffers)
    else:
        plain: Any = column.field_type
        values = pa.array([from_bytes(plain, each) for each in written], type_)
    is_nan = pa.types.is_floating(type_) and pc.any(pc.is_nan(values)).as_py()
    return pa.nulls(0, type_) if is_nan else values


def _is_empty(column: NestedField, file: DataFile) -> bool:
    """Return if the file holds only nulls and NaN in the column."""
    nulls, nans = (
        _figure(counts, column) for counts in (file.null_value_counts, file.nan_value_counts)
    )
    return bool((nulls or 0) + (nans or 0) >= file.record_count)


def _figure(figures: Mapping[int, Any] | None, column: NestedField) -> Any:
    return (figures or {}).get(column.field_id)
