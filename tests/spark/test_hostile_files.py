"""Hostile files end with a reason, and Spark goes on."""

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from lakegate.limits import Limits
from tests.fakes.lying_parquet import parquet, promising, renamed, wide, with_page
from tests.spark.conftest import Read

pytestmark = pytest.mark.spark
Reading = Callable[..., Read]
COLUMNS: list[Any] = [("id", "integer", "bigint"), ("name", "string")]
ROWS = [(1, "a"), (2, "b"), (3, "c")]
HUGE = (1 << 31) - 1


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip"])
def test_a_page_that_unpacks_to_too_much_ends_its_own_file(reading: Reading, codec: str) -> None:
    """A small page that declares two gigabytes is refused, and the next file is read."""
    assert reading(with_page(codec, HUGE), "parquet", COLUMNS).code == "OUT_OF_MEMORY"
    assert reading(with_page(codec, -1), "parquet", COLUMNS).code == "CORRUPT_FILE"
    assert reading(parquet(codec), "parquet", COLUMNS).rows == ROWS


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (promising(10**9, 10**9), "CORRUPT_FILE"),
        (wide(100_000), "TOO_MANY_COLUMNS"),
        (renamed(b"other"), "CORRUPT_FILE"),
        (renamed(b"\x8a"), "CORRUPT_FILE"),
        (b"PARE" + parquet()[4:-4] + b"PARE", "NOT_PARQUET"),
    ],
)
def test_parquet_that_promises_too_much_is_refused(
    reading: Reading, body: bytes, code: str
) -> None:
    """Rows without values, 100,000 columns and a lost column are refused in time."""
    assert reading(body, "parquet", COLUMNS).code == code


TWO = {
    "csv": b"id,name\n1,abcdef\n",
    "json": b'{"id":1,"name":"abcdef"}\n',
    "parquet": parquet(),
}


@pytest.mark.parametrize("format_", TWO)
def test_columns_have_a_limit(reading: Reading, format_: str) -> None:
    """A file with as many columns as the limit is read; one more is refused."""
    two, one = (Limits(most_columns=many) for many in (2, 1))
    assert reading(TWO[format_], format_, COLUMNS, limits=two).rows
    assert reading(TWO[format_], format_, COLUMNS, limits=one).code == "TOO_MANY_COLUMNS"


def test_keys_that_differ_in_each_row_are_too_many(reading: Reading) -> None:
    """Keys are counted over all objects without collecting all of them."""
    rows = b"".join(b'{"id":%d,"name":"a","k%d":1}\n' % (n, n) for n in range(3_000))
    assert reading(rows, "json", COLUMNS).code == "TOO_MANY_COLUMNS"


@pytest.mark.parametrize(
    ("name", "end", "format_", "more"),
    [
        ("file", b"\n", "csv", b"1,x\n"),
        ("file.gz", b"", "csv", b"1,x\n"),
        ("file", b"", "json", b'{"id":2}\n'),
        ("file.gz", b"\n", "json", b'{"id":2}\n'),
    ],
)
def test_lines_have_a_limit(
    reading: Reading, name: str, end: bytes, format_: str, more: bytes
) -> None:
    """A line as long as the limit is read; a file with a longer one is refused."""
    lines = TWO[format_].splitlines()
    body = b"\n".join([*lines[:-1], *[more[:-1]] * 20, lines[-1]]) + end
    longest = max(map(len, lines))
    packed = gzip.compress(body) if name == "file.gz" else body
    fits, too_long = (Limits(longest_line=most) for most in (longest, longest - 1))
    assert len(reading(packed, format_, COLUMNS, name, fits).rows) == 21
    assert reading(packed, format_, COLUMNS, name, too_long).code == "LINE_TOO_LONG"


@pytest.mark.parametrize("name", ["file", "file.gz"])
def test_an_array_has_a_limit(reading: Reading, name: str) -> None:
    """An array as large as the limit is read, compressed or not; a larger one is refused."""
    body = json.dumps([{"id": 1, "name": "a"}]).encode()
    packed = gzip.compress(body) if name == "file.gz" else body
    fits, too_large = (Limits(largest_array=most, longest_line=5) for most in (len(body), 9))
    assert reading(packed, "json", COLUMNS, name, fits).rows == [(1, "a")]
    assert reading(packed, "json", COLUMNS, name, too_large).code == "TOO_LARGE"


def test_json_that_is_too_deep_or_too_large_a_number_is_a_bad_row(reading: Reading) -> None:
    """100,000 levels or digits make their own row bad, and no other."""
    rows = [
        b'{"id":1,"name":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"id":2,"name":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
        b'{"id":' + b"9" * 100_000 + b',"name":"c"}',
        b'{"id":1e400,"name":"d"}',
        b'{"id":5,"name":"' + b"x" * (10 << 20) + b'"}',
    ]
    found = reading(b"\n".join(rows), "json", COLUMNS)
    assert [(id_, len(name)) for id_, name in found.rows] == [(5, 10 << 20)]
    assert len(found.bad) == 4
    assert reading(b"[" * 100_000 + b"]" * 100_000, "json", COLUMNS).code == "CORRUPT_FILE"


@pytest.mark.parametrize("first", [b"1,a", b'1,"a\nb"'])
def test_a_row_of_too_many_cells_is_refused(reading: Reading, first: bytes) -> None:
    """A row of 30,000 cells is refused with a reason that shows none of them."""
    body = b"id,name\n" + first + b"\n2" + b",x" * 30_000 + b"\n"
    assert reading(body, "csv", COLUMNS).code == "CORRUPT_FILE"
