"""Parquet files with corrupt page levels, or that Spark's vectorized reader fails on."""

import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.fakes.lying_parquet import chunks
from tests.fakes.thrift import footer, read_struct

LISTS = [[1, 2], [3], [4, 5, 6], [], [7], [8, 9], [10], [11, 12]]
# The beginnings of lists: 0 1 0 0 1 1 0 0, 0 1 0 0 1, packed from the lowest bit on.
_LEVELS = bytes([0b00110010, 0b00010010])
_BY_LISTS = {"none": 0, "begins with 1": 0b001, "a row more": 0b010, "a row less": 0b100}


def lists(damage: str = "none", **options: Any) -> bytes:
    """Return eight rows of an id and a list, whose repetition levels have one bit wrong."""
    columns = {"id": list(range(8)), "l": pa.array(LISTS, pa.list_(pa.int64()))}
    body = bytearray(written(columns, **options))
    at = body.index(_LEVELS)
    body[at] ^= _BY_LISTS[damage]
    return bytes(body)


def spinning() -> bytes:
    """Return a file on which Spark's vectorized reader never ends: its page has no levels."""
    ids = pa.array([None if n % 7 == 3 else n for n in range(24)], pa.int64())
    body = bytearray(written({"id": ids}))
    _, metadata = footer(bytes(body))
    at = next(chunks(metadata))[9][1]
    page = io.BytesIO(body[at:])
    read_struct(page)
    at += page.tell()
    body[at : at + 64] = bytes(64)
    return bytes(body)


def decimals(rows: int = 8) -> bytes:
    """Return decimals of 4 digits as a byte stream split, for the row-based reader alone."""
    numbers = pa.array([Decimal(n) for n in range(rows)], pa.decimal128(4))
    return written({"id": numbers}, column_encoding={"id": "BYTE_STREAM_SPLIT"})


def written(columns: dict[str, Any], **options: Any) -> bytes:
    """Return the columns as a plain file, changed only by the options."""
    file = io.BytesIO()
    plain = {"compression": "none", "use_dictionary": False}
    pq.write_table(pa.table(columns), file, **{**plain, **options})
    return file.getvalue()
