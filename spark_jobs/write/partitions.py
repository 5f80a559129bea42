"""Divide rows by the partitions of their table, and sort them. Pure.

Iceberg's specification defines the transforms ("Partition Transforms"), and how a value of a
partition is written in JSON (appendix D, "JSON single-value serialization").
"""

from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakegate.contract.columns import Column
from lakegate.contract.reading.layout import SortKey
from spark_jobs.files.arrow.parquet import MustRewrite
from spark_jobs.files.arrow.values import numbered, within_structs
from spark_jobs.write.layout import Layout, PartitionField

Columns = Mapping[str, Column]
_MOST = 1000  # partitions of rows that are in memory: each becomes a data file


def arranged(
    rows: pa.Table, layout: Layout, columns: Columns
) -> Iterator[tuple[dict[int, Any], pa.Table]]:
    """Yield the rows of each partition in the table's order, with the partition's values.

    The values are by their field ids, as Iceberg writes them in JSON. `columns` are the table's,
    and those within them, by name. Raises MustRewrite for very many partitions.
    """
    order = np.arange(rows.num_rows)
    for key in reversed(layout.order.keys):
        order = order[_sorted(_values(rows, columns[key.column]).take(pa.array(order)), key)]
    parts = [_transformed(rows, columns[each.column], each) for each in layout.spec.fields]
    numbers = numbered(parts, rows.num_rows)[order]
    order = order[np.argsort(numbers, kind="stable")]
    starts = np.flatnonzero(np.diff(np.sort(numbers), prepend=-1))
    ordered = rows.take(pa.array(order))
    if len(starts) > _MOST:
        raise MustRewrite(f"its rows belong to more than {_MOST:,} partitions")
    for start, end in pairwise([*starts, rows.num_rows]):
        first = int(order[start])
        pairs = zip(layout.spec.fields, parts, strict=True)
        partition = {each.id: _single(part[first].as_py()) for each, part in pairs}
        yield partition, ordered.slice(start, end - start)


def _values(rows: pa.Table, column: Column) -> pa.ChunkedArray:
    return within_structs(column, rows[column.top])[0]


def _sorted(values: pa.ChunkedArray, key: SortKey) -> np.ndarray[Any, Any]:
    """Return the places of values in the order of a key, of equal ones in their own order."""
    direction = "descending" if key.descending else "ascending"
    nulls = "at_start" if key.nulls_first else "at_end"
    indices = pc.sort_indices(pa.table({"values": values}), [("values", direction, nulls)])
    places: np.ndarray[Any, Any] = indices.to_numpy()
    return places


def _transformed(rows: pa.Table, column: Column, field: PartitionField) -> pa.Array:
    """Return each row's value of a partition's field."""
    from pyiceberg_core import transform  # large: only partitioned tables load it

    name, number = field.parts
    values = _values(rows, column).combine_chunks()
    values = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
    width = [int(number)] if number else []
    transformed: pa.Array = getattr(transform, name)(values, *width)
    return transformed


def _single(value: Any) -> Any:
    """Return a value as Iceberg writes it in JSON."""
    match value:
        case date():  # or a moment
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case bytes():
            return value.hex().upper()
        case _:
            return value
