"""Nested columns of Parquet files, decoded leaf by leaf, and the damage that shows then."""

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.files.arrow import ArrowFile, Damaged, MustRewrite
from spark_jobs.files.source import LocalFile
from tests.fakes import lying_parquet, thrift
from tests.fakes.amounts import SEED
from tests.fakes.parquet_files import PATHS, ROWS, footer_of, written

_GROUPS = ("pair", "pair.inner", "items", "items.list.element", "prices", "grid")
_LEAVES = [path for path in PATHS if path not in (*_GROUPS, "grid.list.element")]
_PAIR = pa.struct({"a": pa.int64(), "b": pa.int64()})


@dataclass(frozen=True)
class Decoded:
    """A file's leaves by their paths."""

    folder: Path

    def of(self, body: bytes, *leaves: str) -> pa.Table:
        """Return the leaves in the first row group."""
        file = self.folder / "file.parquet"
        file.write_bytes(body)
        return ArrowFile(LocalFile(file), footer_of(body)[1]).row_group(0, leaves)


@pytest.fixture
def decoded(tmp_path: Path) -> Decoded:
    return Decoded(tmp_path)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_each_leaf_has_its_values(decoded: Decoded, version: str) -> None:
    """A leaf has what is around it, without other leaves."""
    found = decoded.of(written(ROWS, data_page_version=version), *_LEAVES)
    assert found.column_names == _LEAVES
    assert found["big"].to_pylist() == ROWS["big"].to_pylist()
    days = [None, None, None, None]
    days[0] = ROWS["pair"][0].as_py()["inner"]["day"]
    inner = [row and row["inner"] for row in found["pair.inner.day"].to_pylist()]
    assert [each and each["day"] for each in inner] == days
    skus = [[{"sku": "s"}, None, {"sku": None}], [], None, [None]]
    assert found["items.list.element.sku"].to_pylist() == skus
    assert found["grid.list.element.list.element"].to_pylist() == ROWS["grid"].to_pylist()


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
    leaf = "l.list.element.d" if nested else "l"

    def of(moment: int) -> pa.Table:
        value = pa.array([moment], pa.int32() if unit == 1 else pa.int64()).cast(type_)
        rows = (
            value
            if not nested
            else pa.ListArray.from_arrays([0, 1], pa.StructArray.from_arrays([value], ["d"]))
        )
        assert rows.type == around
        return decoded.of(written(pa.table({"l": rows})), leaf)

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
    ("one", "other", "leaf"),
    [
        (_lists([2, 1]), _lists([1, 2]), "l.list.element"),
        (_lists([2, 0, 1]), _lists([2, 1, 0]), "l.list.element"),
        (_structs([True, False]), _structs([False, True]), "l"),
        (_structs([True, False]), _structs([True, True]), "l"),
    ],
)
def test_leaves_that_do_not_belong_together(
    decoded: Decoded, one: bytes, other: bytes, leaf: str
) -> None:
    """A file whose leaves have lists of other lengths, or other structs, is left to Spark."""
    leaves = f"{leaf}.a", f"{leaf}.b"
    assert decoded.of(one, *leaves).num_rows == decoded.of(other, *leaves).num_rows
    mixed = lying_parquet.grafted(one, other, 1)
    with pytest.raises(Damaged, match="parts of its column l do not belong together"):
        decoded.of(mixed, *leaves)


@pytest.mark.parametrize("more", [-1, 1])
@pytest.mark.parametrize("body", [_lists([2, 1]), written(pa.table({"l": [1, 2]}))])
def test_values_are_counted(decoded: Decoded, body: bytes, more: int) -> None:
    """A footer that declares another number of values than there are is not believed."""
    leaf = "l.list.element.a" if b"element" in body else "l"
    decoded.of(body, leaf)
    pages, footer = thrift.footer(body)
    chunk: Any = next(lying_parquet.chunks(footer))
    chunk[5] = 6, chunk[5][1] + more
    with pytest.raises(Damaged):
        decoded.of(thrift.with_footer(pages, footer), leaf)


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
        decoded.of(body, "l.list.element")
    assert refused.type is MustRewrite


def test_any_lists_are_counted(decoded: Decoded) -> None:
    """Random lists of lists of structs are decoded with as many values as their footer declares."""
    random = Random(SEED)  # noqa: S311 - no secret
    type_ = pa.list_(pa.struct({"a": pa.list_(pa.int8()), "b": pa.map_(pa.int8(), pa.string())}))
    leaves = [
        "l.list.element.a.list.element",
        "l.list.element.b.key_value.key",
        "l.list.element.b.key_value.value",
    ]

    def some(make: Any, most: int = 3) -> Any:
        return [make() for _ in range(random.randint(0, most))] if random.random() > 0.3 else None

    def struct() -> Any:
        pairs = some(lambda: (random.randint(0, 9), random.choice(["x", None])))
        made = {"a": some(lambda: random.choice([1, None])), "b": pairs}
        return made if random.random() > 0.2 else None

    for _ in range(100):
        rows = [some(struct) for _ in range(random.randint(1, 9))]
        body = written(pa.table({"l": pa.array(rows, type_)}))
        found = decoded.of(body, *leaves)[leaves[0]].to_pylist()
        assert found == [row and [each and {"a": each["a"]} for each in row] for row in rows]
