"""A Parquet footer that contradicts itself is refused, without Spark."""

import io
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS
from spark_jobs.files.arrow.consistency import check_parquet, parquet_footer
from tests.fakes.in_memory import InMemory
from tests.fakes.lying_parquet import chunks, groups, swapped
from tests.fakes.thrift import Struct, footer, with_footer

_I32, _I64 = 5, 6
ROWS = pa.table(
    {
        "id": range(1000),
        "other": range(1000),
        "name": [f"n{n}" if n % 3 else None for n in range(1000)],
        "list": [[n] * (n % 4) if n % 5 else None for n in range(1000)],
        "pair": [{"a": n, "b": None} if n % 7 else None for n in range(1000)],
    }
)


def honest(**options: Any) -> bytes:
    """Return the rows as a Parquet file of four groups."""
    file = io.BytesIO()
    pq.write_table(ROWS, file, row_group_size=250, **options)
    return file.getvalue()


def refusal(body: bytes) -> str:
    """Return why a file is refused, "" if it is taken."""
    landed = InMemory(body)
    try:
        check_parquet(parquet_footer(landed), landed.size, DEFAULTS)
    except Permanent as error:
        return error.message if error.code == "CORRUPT_FILE" else f"{error} is another reason"
    return ""


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_files_of_arrow_are_taken(version: str, dictionary: bool, codec: str) -> None:
    """No honest file is refused, whatever its pages, nor one without rows."""
    options = {"data_page_version": version, "use_dictionary": dictionary, "compression": codec}
    assert refusal(honest(**options)) == ""
    empty = io.BytesIO()
    with pq.ParquetWriter(empty, ROWS.schema, **options) as writer:
        for rows in (ROWS, ROWS.slice(0, 0), ROWS):
            writer.write_table(rows)
    assert refusal(empty.getvalue()) == ""
    none = io.BytesIO()
    pq.write_table(ROWS.slice(0, 0), none, **options)
    assert refusal(none.getvalue()) == ""


def test_files_of_duckdb_are_taken(tmp_path: Any) -> None:
    """No file of DuckDB is refused, nor one without rows."""
    for where in ("true", "false"):
        file = tmp_path / f"{where}.parquet"
        with duckdb.connect() as database:
            database.register("rows", ROWS)
            database.execute(f"COPY (FROM rows WHERE {where}) TO '{file}' (ROW_GROUP_SIZE 200)")
        assert refusal(file.read_bytes()) == ""


def _number(id_: int, change: Callable[[int], int]) -> Callable[[Struct], None]:
    def lie(struct: Struct) -> None:
        type_, value = struct[id_]
        struct[id_] = type_, change(value)

    return lie


def _drop_group(metadata: Struct) -> None:
    groups(metadata).pop()


def _repeat_group(metadata: Struct) -> None:
    groups(metadata).append(groups(metadata)[0])


def _repeat_group_and_count_it(metadata: Struct) -> None:
    _repeat_group(metadata)
    metadata[3] = _I64, 1250


def _drop_groups(metadata: Struct) -> None:
    groups(metadata).clear()


def _drop_chunk(metadata: Struct) -> None:
    groups(metadata)[-1][1][1][1].pop()


def _swap_paths(metadata: Struct) -> None:
    one, other, *_ = chunks(metadata)
    one[3], other[3] = other[3], one[3]


def _swap_chunks(metadata: Struct) -> None:
    listed = groups(metadata)[0][1][1][1]
    listed[0], listed[1] = listed[1], listed[0]


def _retype_schema(metadata: Struct) -> None:
    metadata[2][1][1][1][1] = _I32, 1


def _same_pages(metadata: Struct) -> None:
    one, other, *_ = chunks(metadata)
    for id_ in (7, 9, 11):
        one[id_] = other[id_]


def _require_column(metadata: Struct) -> None:
    """Declare a column that may be null as one that never is: its levels are others then."""
    metadata[2][1][1][1][3] = _I32, 0


def _of_chunk(id_: int, change: Callable[[int], int]) -> Callable[[Struct], None]:
    return lambda metadata: _number(id_, change)(next(chunks(metadata)))


def _of_group(id_: int, change: Callable[[int], int]) -> Callable[[Struct], None]:
    return lambda metadata: _number(id_, change)(groups(metadata)[-1])


LIES: dict[str, Callable[[Struct], None]] = {
    "more rows": _number(3, lambda rows: rows + 1),
    "less rows": _number(3, lambda rows: rows - 1),
    "no rows": _number(3, lambda _: 0),
    "negative rows": _number(3, lambda rows: -rows),
    "a group dropped": _drop_group,
    "all groups dropped": _drop_groups,
    "a group twice": _repeat_group,
    "a group twice, and counted": _repeat_group_and_count_it,
    "a group with more rows": _of_group(3, lambda rows: rows + 1),
    "a group with less rows": _of_group(3, lambda rows: rows - 1),
    "a group of 2^61 bytes": _of_group(6, lambda _: 1 << 61),
    "a group of less than no bytes": _of_group(6, lambda _: -1 << 40),
    "a chunk dropped": _drop_chunk,
    "two paths swapped": _swap_paths,
    "two chunks swapped": _swap_chunks,
    "another type in the schema": _retype_schema,
    "another type in a chunk": _of_chunk(1, lambda _: 1),
    "levels of an optional column": _require_column,
    "a value more": _of_chunk(5, lambda values: values + 1),
    "a value less": _of_chunk(5, lambda values: values - 1),
    "two chunks at one place": _same_pages,
    "a chunk over the next": _of_chunk(7, lambda size: size + 1),
    "a chunk over the footer": _of_chunk(9, lambda at: at + (1 << 20)),
    "pages before the file": _of_chunk(11, lambda _: 1),
    "pages behind their chunk": _of_chunk(9, lambda at: at + 10_000),
}


def _of_schema(id_: int, value: int) -> Callable[[Struct], None]:
    """Give the first column a value in the schema, and its chunks the same type."""

    def lie(metadata: Struct) -> None:
        metadata[2][1][1][1][id_] = _I32, value
        for chunk in chunks(metadata) if id_ == 1 else ():
            chunk[1] = _I32, value

    return lie


@pytest.mark.parametrize("value", [-1, (1 << 31) - 1, 99])
@pytest.mark.parametrize("kind", ["type", "repetition", "converted type", "compression"])
def test_kinds_that_parquet_does_not_have_are_refused(kind: str, value: int) -> None:
    """Arrow ends the whole process on some numbers that stand for no kind at all."""
    places = {"type": 1, "repetition": 3, "converted type": 6}
    before, metadata = footer(honest())
    lie = (
        _of_chunk(4, lambda _: value) if kind == "compression" else _of_schema(places[kind], value)
    )
    lie(metadata)
    assert f"the {kind} {value}, which" in refusal(with_footer(before, metadata))


@pytest.mark.parametrize("lie", LIES)
def test_a_footer_that_contradicts_itself_is_refused(lie: str) -> None:
    """A lie in any count, size, place, path or type that the footer gives twice is refused."""
    before, metadata = footer(honest())
    assert refusal(with_footer(before, metadata)) == ""
    LIES[lie](metadata)
    assert refusal(with_footer(before, metadata)).startswith("the Parquet file is damaged: ")


def test_columns_may_lie_in_any_order() -> None:
    """A file whose columns lie in another order than its schema's is legal."""
    body = swapped(honest(use_dictionary=False))
    assert pq.read_table(io.BytesIO(body)).equals(ROWS)
    assert refusal(body) == ""
