"""A value that its declared type cannot hold is never read as another one."""

import struct
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.fakes.damaged_parquet import written
from tests.fakes.lying_parquet import declared, digits, old_lz4, whole
from tests.spark.conftest import Read

pytestmark = pytest.mark.spark
Reading = Callable[..., Read]

NUMBER: list[Any] = [("a", "integer")]
AMOUNT: list[Any] = [("a", "number", "decimal(5,2)")]
TIME: list[Any] = [("a", "timestamp")]
EPOCH = 2_440_588  # the Julian day of 1970-01-01


@pytest.mark.parametrize(
    ("bits", "signed", "converted", "least", "most"),
    [
        (8, True, 15, -128, 127),
        (16, True, 16, -(1 << 15), (1 << 15) - 1),
        (8, False, 11, 0, 255),
        (16, False, 12, 0, 65_535),
    ],
)
def test_an_integer_of_few_bits_has_no_more(
    reading: Reading, bits: int, signed: bool, converted: int, least: int, most: int
) -> None:
    """The least and the largest are read; one less or one more makes its row bad."""
    values = pa.array([least, most, None, least - 1, most + 1], pa.int32())
    body = declared(written({"a": values}), "a", whole(bits, signed=signed), converted)
    found = reading(body, "parquet", NUMBER)
    assert found.rows == [(least,), (most,), (None,)]
    assert found.bad == [f"a: {least - 1}", f"a: {most + 1}"]


def test_integers_of_few_bits_are_read_at_any_depth(reading: Reading) -> None:
    """An item that has too many bits makes its row bad; others are read, in structs, too."""
    rows: list[Any] = [[{"i": 1}, {"i": -128}, None], [{"i": 128}], None]
    item = pa.struct({"i": pa.int32()})
    body = declared(written({"a": pa.array(rows, pa.list_(item))}), "i", whole(8, signed=True), 15)
    properties = [{"name": "i", "logicalType": "integer"}]
    items = {"logicalType": "object", "properties": properties}
    columns = [{"name": "a", "logicalType": "array", "items": items}]
    found = reading(body, "parquet", columns)
    assert found.rows == [([(1,), (-128,), None],), (None,)]
    assert len(found.bad) == 1


def test_a_decimal_has_no_more_digits_than_declared(reading: Reading) -> None:
    """A decimal of five digits is read; one of seven in the same column is damage."""
    lie = lambda *values: declared(  # noqa: E731
        written({"a": pa.array(values, pa.int32())}), "a", digits(5, 2), 5, scale=2, precision=5
    )
    fine = reading(lie(99_999, -99_999, None), "parquet", AMOUNT)
    assert fine.rows == [(Decimal("999.99"),), (Decimal("-999.99"),), (None,)]
    for value in (100_000, -1_234_567):
        found = reading(lie(1, value), "parquet", AMOUNT)
        assert found.code == "CORRUPT_FILE", value


def test_a_decimal_of_38_digits_has_no_more(reading: Reading) -> None:
    """The largest decimal is read; a larger one is refused."""
    largest = 10**38 - 1
    for value, code in ((largest, ""), (largest + 1, "refused")):
        values = pa.array([value.to_bytes(16, "big")], pa.binary(16))
        body = declared(written({"a": values}), "a", digits(38, 0), 5, scale=0, precision=38)
        found = reading(body, "parquet", [("a", "number", "decimal(38,0)")])
        assert bool(found.code) == bool(code)
        assert found.rows == ([] if code else [(Decimal(largest),)])


def old_times(*moments: int, day: int = EPOCH) -> bytes:
    """Return times in INT96, given as nanoseconds of the first day, that day being `day`."""
    body = written(
        {"a": pa.array(moments, pa.timestamp("ns"))}, use_deprecated_int96_timestamps=True
    )
    for moment in moments:
        before, after = (struct.pack("<qi", moment, each) for each in (EPOCH, day))
        assert before in body
        body = body.replace(before, after)
    return body


def test_old_times_lose_no_digit(reading: Reading) -> None:
    """Times in INT96 are read if microseconds hold them; else the file is refused."""
    read = lambda body: reading(body, "parquet", TIME)  # noqa: E731
    assert read(old_times(1000)).rows == [(datetime(1970, 1, 1, 0, 0, 0, 1),)]  # noqa: DTZ001
    assert read(old_times(1000, 1001)).code == "UNREADABLE_TYPE"
    assert len(read(old_times(1000, day=EPOCH + 10_000_000)).bad) == 1
    assert read(old_times(1000, day=(1 << 31) - 1)).code == "CORRUPT_FILE"


def test_lz4_that_spark_cannot_unpack_is_refused_with_what_to_do(reading: Reading) -> None:
    """Pages of the old codec are read as Hadoop frames them; any other framing is not supported."""
    values = list(range(1000))
    framed, bare = (old_lz4(values, framed=framed) for framed in (True, False))
    assert reading(framed, "parquet", NUMBER).rows == [(value,) for value in values]
    assert reading(bare, "parquet", NUMBER).code == "UNREADABLE_TYPE"


@pytest.mark.parametrize("column", ["number", "string"])
def test_decimals_of_too_many_digits_are_refused(reading: Reading, column: str) -> None:
    """A file with decimals of more than 38 digits is refused for its type, not for a value."""
    for width in (39, 50):
        file = written({"a": pa.array([Decimal(1)], pa.decimal256(width, 2))})
        assert reading(file, "parquet", [("a", column)]).code == "UNREADABLE_TYPE"


def test_times_of_day_are_refused_with_what_to_do(reading: Reading) -> None:
    """A file with times of day is refused, whatever type its contract has."""
    types = pa.time64("us"), pa.time32("ms"), pa.time64("ns")
    for type_, column in zip(types, ("string", "integer", "timestamp"), strict=True):
        found = reading(written({"a": pa.array([1], type_)}), "parquet", [("a", column)])
        assert found.code == "UNREADABLE_TYPE", (type_, column)
