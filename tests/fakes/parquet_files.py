"""Parquet files of several writers, and the parts of a Parquet file."""

import io
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

_TYPES = {
    "flag": pa.bool_(),
    "small": pa.int32(),
    "big": pa.int64(),
    "single": pa.float32(),
    "real": pa.float64(),
    "price": pa.decimal128(9, 2),
    "total": pa.decimal128(18, 3),
    "huge": pa.decimal128(38, 10),
    "text": pa.string(),
    "raw": pa.binary(),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "pair": pa.struct(
        {"a": pa.string(), "b": pa.float64(), "inner": pa.struct({"day": pa.date32()})}
    ),
    "items": pa.list_(pa.struct({"sku": pa.string(), "count": pa.int64()})),
    "prices": pa.map_(pa.string(), pa.decimal128(9, 2)),
    "grid": pa.list_(pa.list_(pa.int32())),
}
SCHEMA = pa.schema(list(_TYPES.items()))
# The same columns in a contract.
SPARK_TYPES = {
    "flag": "boolean",
    "small": "int",
    "big": "bigint",
    "single": "float",
    "real": "double",
    "price": "decimal(9,2)",
    "total": "decimal(18,3)",
    "huge": "decimal(38,10)",
    "text": "string",
    "raw": "binary",
    "day": "date",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "pair": "struct<a:string,b:double,inner:struct<day:date>>",
    "items": "array<struct<sku:string,count:bigint>>",
    "prices": "map<string,decimal(9,2)>",
    "grid": "array<array<int>>",
}
_LOGICAL = {"string": "string", "binary": "string", "int": "integer", "bigint": "integer"}
_LOGICAL |= {name: name for name in ("boolean", "date", "timestamp")}
_LOGICAL |= {"timestamp_ntz": "timestamp"}


def declared(name: str, type_: str) -> dict[str, Any]:
    """Return a column of a plain type as a contract declares it."""
    return {
        "name": name,
        "logicalType": _LOGICAL.get(type_, "number"),
        "physicalType": type_,
    }


PROPERTIES: list[dict[str, Any]] = [
    *(declared(name, type_) for name, type_ in list(SPARK_TYPES.items())[:13]),
    {
        "name": "pair",
        "logicalType": "object",
        "properties": [
            declared("a", "string"),
            declared("b", "double"),
            {"name": "inner", "logicalType": "object", "properties": [declared("day", "date")]},
        ],
    },
    {
        "name": "items",
        "logicalType": "array",
        "items": {
            "logicalType": "object",
            "properties": [declared("sku", "string"), declared("count", "bigint")],
        },
    },
    {
        "name": "prices",
        "logicalType": "map",
        "map": {
            "key": {"logicalType": "string"},
            "value": {"logicalType": "number", "physicalType": "decimal(9,2)"},
        },
    },
    {
        "name": "grid",
        "logicalType": "array",
        "items": {
            "logicalType": "array",
            "items": {"logicalType": "integer", "physicalType": "int"},
        },
    },
]
ROWS = pa.table(
    {
        "flag": [True, False, None, True],
        "small": [-(2**31), 2**31 - 1, None, 0],
        "big": [-(2**63), 2**63 - 1, None, 0],
        "single": [-0.0, float("nan"), None, 1.5],
        "real": [float("-inf"), 2.5, None, float("nan")],
        "price": [Decimal("-1234567.89"), Decimal("0.01"), None, Decimal("0.00")],
        "total": [Decimal("-0.128"), Decimal("123456789012345.678"), None, Decimal("1.000")],
        "huge": [Decimal(-(10**27)), Decimal("1.0000000001"), None, Decimal(10) ** 27],
        "text": ["a long text of more than sixteen", "ÿ\U0010ffff" * 9, None, ""],
        "raw": [b"\xff" * 17, b"\0" * 17, None, b""],
        "day": [date(1, 1, 1), date(9999, 12, 31), None, date(1970, 1, 1)],
        "at": [
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(2013, 1, 1, 1, 2, 3, 456789, UTC),
            None,
            datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
        ],
        "local": [datetime(1582, 10, 5), datetime(2013, 1, 1), None, datetime(1969, 12, 31, 23)],  # noqa: DTZ001
        "pair": [
            {"a": "x", "b": -0.0, "inner": {"day": date(2013, 1, 1)}},
            {"a": None, "b": float("nan"), "inner": None},
            None,
            {"a": "a text of more than sixteen", "b": 1.0, "inner": {"day": None}},
        ],
        "items": [[{"sku": "s", "count": 1}, None, {"sku": None, "count": 2}], [], None, [None]],
        "prices": [[("k", Decimal("0.01")), ("l", None)], [], None, [("", Decimal("-1.00"))]],
        "grid": [[[1, 2], [], None], [], None, [[None]]],
    },
    schema=SCHEMA,
)


def written(rows: pa.Table, **options: Any) -> bytes:
    """Return rows as a Parquet file of Arrow's writer."""
    file = io.BytesIO()
    pq.write_table(rows, file, **options)
    return file.getvalue()


def by_duckdb(rows: pa.Table, folder: Path, options: str = "") -> bytes:
    """Return rows as a Parquet file of DuckDB's writer."""
    file = folder / "duckdb.parquet"
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("given", rows)
        database.execute(f"COPY given TO '{file}' (FORMAT parquet{options})")
    return file.read_bytes()


def by_arrow() -> Mapping[str, bytes]:
    """Return the rows in files of Arrow's writer, by what is special about each."""
    many = pa.concat_tables([ROWS] * 9)
    return {
        "format 1.0": written(ROWS, version="1.0"),
        "format 2.4": written(ROWS, version="2.4"),
        "format 2.6": written(ROWS, version="2.6"),
        "no statistics": written(ROWS, write_statistics=False),
        "a page index": written(many, write_page_index=True),
        "checksums": written(ROWS, write_page_checksum=True),
        "bloom filters": written(ROWS, bloom_filter_options={"text": {"ndv": 9}}),
        "no dictionary": written(ROWS, use_dictionary=False),
        "many row groups": written(many, row_group_size=2),
        "pages of version 2": written(
            ROWS,
            data_page_version="2.0",
            use_dictionary=["text", "big"],
            column_encoding={"flag": "PLAIN"},
        ),
        "integer decimals": written(ROWS, store_decimal_as_integer=True),
        "no Arrow schema": written(ROWS, store_schema=False),
        "gzip": written(ROWS, compression="gzip"),
        "zstd": written(ROWS, compression="zstd"),
        "uncompressed": written(ROWS, compression="none"),
    }


def footer_of(file: bytes) -> tuple[int, bytes]:
    """Return where a Parquet file's footer begins, and the footer."""
    length = int.from_bytes(file[-8:-4], "little")
    return len(file) - 8 - length, file[-8 - length : -8]


def ids_within(field: pa.Field, path: str) -> Iterator[tuple[str, int]]:
    """Yield the path and the field id of a column and of all within it."""
    yield path, int(field.metadata[b"PARQUET:field_id"])
    if pa.types.is_struct(field.type):
        for inner in field.type:
            yield from ids_within(inner, f"{path}.{inner.name}")
    elif pa.types.is_map(field.type):
        yield from ids_within(field.type.key_field, f"{path}.key_value.key")
        yield from ids_within(field.type.item_field, f"{path}.key_value.value")
    elif pa.types.is_list(field.type):
        yield from ids_within(field.type.value_field, f"{path}.list.element")
