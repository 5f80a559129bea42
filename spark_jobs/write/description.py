"""Describe a data file for Iceberg's manifests: its sizes, counts and bounds. Pure."""

import json
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from spark_jobs.files.arrow.parquet import page_start
from spark_jobs.files.arrow.values import ColumnStatistics, units_of
from spark_jobs.schema.types import digits
from spark_jobs.write.layout import Field, Layout


@dataclass(frozen=True)
class Written:
    """A data file that was written: its address, and what is known of its rows.

    `columns` are statistics by the paths of columns, without those within lists and maps. `sizes`
    are those of the columns in bytes, and its row groups begin at `offsets`. `partition` has the
    values of its partition by their field ids, as Iceberg writes them in JSON.
    """

    location: str
    size: int
    rows: int
    columns: Mapping[str, ColumnStatistics]
    sizes: Mapping[str, int]
    offsets: tuple[int, ...]
    partition: Mapping[int, Any] = field(default_factory=dict)


def scan_task(file: Written, layout: Layout) -> str:
    """Return a scan of one data file as JSON, as Iceberg's ScanTaskParser reads it."""
    described = {
        "spec-id": layout.spec.id,
        "content": "DATA",
        "file-path": file.location,
        "file-format": "PARQUET",
        "partition": {str(id_): value for id_, value in file.partition.items()},
        "file-size-in-bytes": file.size,
        "record-count": file.rows,
        **_metrics(layout.fields, file.columns, file.sizes),
        "split-offsets": list(file.offsets),
        "sort-order-id": layout.order.id,
    }
    return json.dumps(
        {
            "task-type": "file-scan-task",
            "schema": layout.schema,
            "spec": layout.spec.written,
            "data-file": described,
            "start": 0,
            "length": file.size,
            "residual-filter": True,
        }
    )


def column_sizes(metadata: Any) -> dict[str, int]:
    """Return the size of each column in a Parquet file, compressed, in bytes."""
    sizes: dict[str, int] = {}
    for chunk in (chunk for group in _groups(metadata) for chunk in group):
        sizes[chunk.path_in_schema] = (
            sizes.get(chunk.path_in_schema, 0) + chunk.total_compressed_size
        )
    return sizes


def split_offsets(metadata: Any) -> tuple[int, ...]:
    """Return where the row groups of a Parquet file begin: at their first column's first page."""
    return tuple(page_start(group[0]) for group in _groups(metadata))


def _groups(metadata: Any) -> Iterable[list[Any]]:
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        yield [group.column(n) for n in range(group.num_columns)]


def _metrics(
    fields: Mapping[str, Field], columns: Mapping[str, ColumnStatistics], sizes: Mapping[str, int]
) -> dict[str, Any]:
    sized = {name: field for name, field in fields.items() if field.mode != "none"}
    kept = {name: field for name, field in sized.items() if name in columns}  # not in lists, maps
    by_id = {field.id: columns[name] for name, field in kept.items()}
    bounds = {field.id: bounds_of(field, columns[name]) for name, field in kept.items()}
    return {
        "column-sizes": _map({field.id: sizes[name] for name, field in sized.items()}),
        "value-counts": _map({id_: each.values for id_, each in by_id.items()}),
        "null-value-counts": _map({id_: each.nulls for id_, each in by_id.items()}),
        "nan-value-counts": _map({id_: each.nans for id_, each in by_id.items()}),
        "lower-bounds": _map({id_: _hex(low) for id_, (low, _) in bounds.items()}),
        "upper-bounds": _map({id_: _hex(high) for id_, (_, high) in bounds.items()}),
    }


def _map(values: Mapping[int, Any]) -> dict[str, list[Any]]:
    """Return a map from field ids as Iceberg writes it in JSON, without those that are None."""
    known = {id_: value for id_, value in sorted(values.items()) if value is not None}
    return {"keys": list(known), "values": list(known.values())}


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex().upper()


_Bounds = tuple[bytes | None, bytes | None]
_TRUNCATE = re.compile(r"truncate\((\d+)\)")
_LAST_CHARACTER, _SURROGATES = 0x10FFFF, (0xD800, 0xDFFF)


def bounds_of(field: Field, statistics: ColumnStatistics) -> _Bounds:
    """Return the bounds of a column as bytes, as far as the mode of its metrics wants them.

    Iceberg's specification, appendix D: "Single-value serialization".
    """
    if field.mode == "counts" or statistics.low is None or statistics.high is None:
        return None, None
    low, high = statistics.low, statistics.high
    if field.type in ("float", "double"):  # for Iceberg -0.0 is less than 0.0, for others equal
        low, high = low or -0.0, high or 0.0
    limit = _TRUNCATE.fullmatch(field.mode)
    if limit and field.type == "string":
        low, high = low[: int(limit[1])], _text_above(high, int(limit[1]))
    if limit and field.type == "binary":
        low, high = low[: int(limit[1])], _bytes_above(high, int(limit[1]))
    write = _serializer(field.type)
    return write(low), None if high is None else write(high)


def _text_above(text: str, length: int) -> str | None:
    """Return the least text of at most `length` characters that is not less; None without one."""
    if len(text) <= length:
        return text
    for at in range(length - 1, -1, -1):
        above = ord(text[at]) + 1
        above = _SURROGATES[1] + 1 if above == _SURROGATES[0] else above
        if above <= _LAST_CHARACTER:
            return text[:at] + chr(above)
    return None


def _bytes_above(value: bytes, length: int) -> bytes | None:
    if len(value) <= length:
        return value
    kept = value[:length].rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _decimal(value: Decimal, scale: int) -> bytes:
    unscaled = units_of(value, scale)
    # Two's complement in the fewest bytes, as Java writes it.
    length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return unscaled.to_bytes(length, "big", signed=True)


_FORMATS = {
    "boolean": "?",
    "int": "<i",
    "date": "<i",
    "long": "<q",
    "timestamp": "<q",
    "timestamptz": "<q",
    "float": "<f",
    "double": "<d",
}


def _serializer(type_: str) -> Callable[[Any], bytes]:
    if type_.startswith("decimal"):
        return lambda value: _decimal(value, digits(type_)[1])
    if type_ == "string":
        return lambda value: bytes(value.encode())
    if type_ == "binary":
        return bytes
    return lambda value: struct.pack(_FORMATS[type_], value)
