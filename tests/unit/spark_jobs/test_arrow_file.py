"""Nested columns of Parquet files, decoded leaf by leaf, and the damage that shows then."""

from contextlib import nullcontext
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.files.arrow.parquet import ArrowFile, Damaged, MustRewrite
from spark_jobs.files.source import LocalFile
from tests.fakes import damaged_parquet, lying_parquet, thrift
from tests.fakes.amounts import SEED
from tests.fakes.parquet_files import ROWS, footer_of, written

_PAIR = pa.struct({"a": pa.int64(), "b": pa.int64()})


@dataclass(frozen=True)
class Decoded:
    """The columns of a file."""

    folder: Path

    def of(self, body: bytes, *columns: str) -> pa.Table:
        """Return columns of the first row group."""
        file = self.folder / "file.parquet"
        file.write_bytes(body)
        return ArrowFile(LocalFile(file), footer_of(body)[1]).row_group(0, columns)


@pytest.fixture
def decoded(tmp_path: Path) -> Decoded:
    return Decoded(tmp_path)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_each_column_has_its_values(decoded: Decoded, version: str) -> None:
    """A column has all its values, whatever is nested in it, and no other column is read."""
    found = decoded.of(written(ROWS, data_page_version=version), *ROWS.column_names[1:])
    assert found.column_names == ROWS.column_names[1:]
    assert list(map(str, found.to_pylist())) == list(
        map(str, ROWS.select(found.column_names).to_pylist())
    )


FIRST, END = -719_162, 2_932_897  # days from 1970 to the years 1 and 10000
DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("type_", "unit"),
    [(pa.date32(), 1), (pa.timestamp("us"), DAY), (pa.timestamp("us", "UTC"), DAY)],
)
@pytest.mark.parametrize("nested", [False, True])
def test_years_that_others_cannot_read_are_for_spark(
    decoded: Decoded, type_: pa.DataType, unit: int, nested: bool
) -> None:
    """A file with a date outside the years 1 to 9999 is not registered, at whatever depth."""
    around = pa.list_(pa.struct({"d": type_})) if nested else type_

    def of(moment: int) -> pa.Table:
        value = pa.array([moment], pa.int32() if unit == 1 else pa.int64()).cast(type_)
        rows = (
            value
            if not nested
            else pa.ListArray.from_arrays([0, 1], pa.StructArray.from_arrays([value], ["d"]))
        )
        assert rows.type == around
        return decoded.of(written(pa.table({"l": rows})), "l")

    for right in (FIRST * unit, END * unit - 1):
        assert of(right).num_rows == 1
    for wrong in (FIRST * unit - 1, END * unit):
        with pytest.raises(MustRewrite, match="outside the years"):
            of(wrong)


def _lists(sizes: list[int]) -> bytes:
    rows = [[{"a": n, "b": n} for n in range(size)] for size in sizes]
    return written(pa.table({"l": pa.array(rows, pa.list_(_PAIR))}), compression="none")


def _structs(present: list[bool]) -> bytes:
    rows = [{"a": 1, "b": None} if there else None for there in present]
    return written(pa.table({"l": pa.array(rows, _PAIR)}), compression="none")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_lists([2, 1]), _lists([1, 2])),
        (_lists([2, 0, 1]), _lists([2, 1, 0])),
        (_structs([True, False]), _structs([False, True])),
        (_structs([True, False]), _structs([True, True])),
    ],
)
def test_leaves_that_do_not_belong_together(decoded: Decoded, one: bytes, other: bytes) -> None:
    """A file whose leaves have lists of other lengths, or other structs, is damaged."""
    assert decoded.of(one, "l").num_rows == decoded.of(other, "l").num_rows
    mixed = lying_parquet.grafted(one, other, 1)
    with pytest.raises(Damaged, match="parts of its column l do not belong together"):
        decoded.of(mixed, "l")


@pytest.mark.parametrize("name", ["s.t", "s."])
def test_a_column_may_be_named_like_a_part_of_another(decoded: Decoded, name: str) -> None:
    """Columns whose names begin alike are no leaves of each other, so they may have other nulls."""
    pairs = pa.array([None, {"a": 1, "b": 2}], _PAIR)
    rows = pa.table({"s": pairs, name: pa.array([[1, 2], None]), "l": pairs.take([1, 0])})
    assert decoded.of(written(rows), *rows.column_names).to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("more", [-1, 1])
@pytest.mark.parametrize("body", [_lists([2, 1]), written(pa.table({"l": [1, 2]}))])
def test_values_are_counted(decoded: Decoded, body: bytes, more: int) -> None:
    """A footer that declares another number of values than there are is not believed."""
    decoded.of(body, "l")
    pages, footer = thrift.footer(body)
    chunk: Any = next(lying_parquet.chunks(footer))
    chunk[5] = 6, chunk[5][1] + more
    with pytest.raises(Damaged):
        decoded.of(thrift.with_footer(pages, footer), "l")


def test_gzips_own_checksum_is_verified(decoded: Decoded) -> None:
    """A changed byte in a gzip page is damage: Spark's readers ignore the checksum of gzip."""
    numbers = pa.table({"n": range(1000)})
    body = bytearray(written(numbers, compression="gzip", use_dictionary=False))
    _, footer = thrift.footer(bytes(body))
    chunk: Any = next(lying_parquet.chunks(footer))
    body[chunk[9][1] + chunk[7][1] - 8] ^= 1
    with pytest.raises(Damaged, match="column n cannot be decoded"):
        decoded.of(bytes(body), "n")


def test_nested_text_is_utf8(decoded: Decoded) -> None:
    """A text in a list that is no UTF-8 is left to Spark."""
    text = pa.array([b"a", b"\xff"], pa.binary()).view(pa.string())
    body = written(pa.table({"l": pa.ListArray.from_arrays([0, 2], text)}))
    with pytest.raises(MustRewrite, match="UTF-8") as refused:
        decoded.of(body, "l")
    assert refused.type is MustRewrite


def test_any_lists_are_counted(decoded: Decoded) -> None:
    """Random lists of lists of structs are decoded with as many values as their footer declares."""
    random = Random(SEED)  # noqa: S311 - no secret
    type_ = pa.list_(pa.struct({"a": pa.list_(pa.int8()), "b": pa.map_(pa.int8(), pa.string())}))

    def some(make: Any, most: int = 3) -> Any:
        return [make() for _ in range(random.randint(0, most))] if random.random() > 0.3 else None

    def struct() -> Any:
        pairs = some(lambda: (random.randint(0, 9), random.choice(["x", None])))
        made = {"a": some(lambda: random.choice([1, None])), "b": pairs}
        return made if random.random() > 0.2 else None

    for _ in range(100):
        rows = [some(struct) for _ in range(random.randint(1, 9))]
        body = written(pa.table({"l": pa.array(rows, type_)}))
        assert decoded.of(body, "l")["l"].to_pylist() == rows


def test_a_decimal_has_no_more_digits_than_declared(decoded: Decoded) -> None:
    """A decimal of more digits than its type is left to Spark, which refuses it."""
    for value in (99_999, 100_000, -100_000):
        plain = damaged_parquet.written({"a": pa.array([value, None], pa.int32())})
        logical = lying_parquet.digits(5, 2)
        body = lying_parquet.declared(plain, "a", logical, 5, scale=2, precision=5)
        fits = nullcontext() if value == 99_999 else pytest.raises(MustRewrite)
        with fits:
            assert decoded.of(body, "a")["a"].to_pylist() == [Decimal("999.99"), None]
