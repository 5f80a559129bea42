"""The footer of a landed Parquet file gets a table's field ids, and loses what may be wrong."""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.files.footer import file_end, with_field_ids
from tests.fakes import lying_parquet, thrift
from tests.fakes.parquet_files import (
    PATHS,
    ROWS,
    SCHEMA,
    by_arrow,
    by_duckdb,
    footer_of,
    ids_within,
    written,
)

_IDS = {path: 2**31 - 1 - n * n * 1000 for n, path in enumerate(PATHS)}
_FLAT = SCHEMA.names[:13]
_FIELD_ID, _SCHEMA, _ROW_GROUPS, _NOTES = 9, 2, 4, 5
_CHUNKS, _META = 1, 3  # of a row group, of a column chunk
_INDEXES, _SAYINGS = (4, 5, 6, 7), (12, 14, 15, 16, 17)
_OTHER_SCHEMAS = (b"ARROW:schema", b"iceberg.schema")


def identified(file: bytes, ids: Mapping[str, int]) -> bytes:
    """Return a file whose columns have these field ids."""
    start, footer = footer_of(file)
    return file[:start] + file_end(with_field_ids(footer, ids))


def assert_only_ids_differ(before: bytes, after: bytes, ids: Mapping[str, int]) -> None:
    """Assert that pages are the same bytes, and footers the same but for what must go.

    The changed footer must have nothing that says which values are in a page.
    """
    pages, plain = thrift.footer(before)
    pages_after, changed = thrift.footer(after)
    assert pages_after == pages
    assert found_ids(after) == ids
    assert _forget(changed) == 0
    _forget(plain)
    for metadata in (plain, changed):
        for element in metadata[_SCHEMA][1][1]:
            element.pop(_FIELD_ID, None)
        if _NOTES in metadata:
            type_, (kind, notes) = metadata[_NOTES]
            kept = [note for note in notes if note[1][1] not in _OTHER_SCHEMAS]
            metadata[_NOTES] = type_, (kind, kept)
    assert plain == changed


def _forget(metadata: dict[int, Any]) -> int:
    """Remove statistics, indexes and bloom filters; return how many there were."""
    removed = 0
    for group in metadata[_ROW_GROUPS][1][1]:
        for chunk in group[_CHUNKS][1][1]:
            removed += sum(chunk.pop(field, None) is not None for field in _INDEXES)
            removed += sum(chunk[_META][1].pop(field, None) is not None for field in _SAYINGS)
    return removed


def found_ids(file: bytes) -> dict[str, int]:
    """Return the field ids that Arrow finds in a file's schema."""
    schema = pq.ParquetFile(io.BytesIO(file)).schema_arrow
    return dict(pair for field in schema for pair in ids_within(field, field.name))


def assert_same_rows(before: bytes, after: bytes) -> None:
    """Assert that Arrow reads the same values from both, with all its checks."""
    read = [
        pq.read_table(io.BytesIO(file), page_checksum_verification=True).cast(SCHEMA)
        for file in (before, after)
    ]
    assert [str(table.to_pylist()) for table in read] == [str(read[0].to_pylist())] * 2


@pytest.mark.parametrize("name", by_arrow())
def test_arrows_files_get_ids(name: str) -> None:
    """Files of Arrow's writer get ids, whatever their format, pages, indexes and filters."""
    before = by_arrow()[name]
    after = identified(before, _IDS)
    assert_only_ids_differ(before, after, _IDS)
    assert_same_rows(before, after)


@pytest.mark.parametrize("options", ["", ", PARQUET_VERSION v2", ", ROW_GROUP_SIZE 2048"])
def test_duckdbs_files_get_ids(tmp_path: Path, options: str) -> None:
    """Files of DuckDB's writer get ids."""
    before = by_duckdb(pa.concat_tables([ROWS] * 2000), tmp_path, options)
    after = identified(before, _IDS)
    assert_only_ids_differ(before, after, _IDS)
    assert_same_rows(before, after)


def test_a_file_without_rows_gets_ids() -> None:
    """A file without rows gets ids."""
    before = written(ROWS.slice(0, 0))
    assert_only_ids_differ(before, identified(before, _IDS), _IDS)


def test_ids_are_replaced() -> None:
    """Earlier ids disappear, also where another writer's note of its schema repeats them."""
    fields = [
        field.with_metadata({b"PARQUET:field_id": b"7"}) if field.name in _FLAT else field
        for field in SCHEMA
    ]
    before = written(ROWS.cast(pa.schema(fields)))
    assert thrift.footer(before)[1][_SCHEMA][1][1][1][_FIELD_ID] == (5, 7)
    assert_only_ids_differ(before, identified(before, _IDS), _IDS)
    assert identified(before, _IDS) == identified(written(ROWS), _IDS)  # none is there twice


def test_notes_that_are_no_schema_are_kept() -> None:
    """Readers see the columns' own types instead of a note's, and all other notes."""
    zoned = pa.table({"at": pa.array([1], pa.timestamp("us", "Europe/Berlin"))})
    notes = {b"k": b"v", b"iceberg.schema": b"{}", b"pandas": b"{}"}
    after = identified(written(zoned.replace_schema_metadata(notes)), {"at": 1})
    assert pq.read_table(io.BytesIO(after)).schema.field("at").type == pa.timestamp("us", "UTC")
    assert pq.read_metadata(io.BytesIO(after)).metadata == {b"k": b"v", b"pandas": b"{}"}


_NAMES = st.text(min_size=1, max_size=20)


@given(
    names=st.lists(_NAMES, min_size=1, max_size=40, unique=True),
    types=st.lists(
        st.sampled_from([SCHEMA.field(name).type for name in _FLAT]), min_size=40, max_size=40
    ),
    nullable=st.lists(st.booleans(), min_size=40, max_size=40),
    had=st.lists(st.none() | st.integers(0, 2**31 - 1), min_size=40, max_size=40),
    data=st.data(),
)
def test_any_flat_schema_gets_ids(
    names: list[str],
    types: list[pa.DataType],
    nullable: list[bool],
    had: list[int | None],
    data: st.DataObject,
) -> None:
    """Any names, types and earlier ids: the new ids are there, and all else stays."""
    described = zip(names, types, nullable, had, strict=False)
    fields = [
        pa.field(name, type_, null, {} if id_ is None else {b"PARQUET:field_id": b"%d" % id_})
        for name, type_, null, id_ in described
    ]
    before = written(pa.schema(fields).empty_table())
    new = data.draw(st.lists(st.integers(1, 2**31 - 1), min_size=len(names), max_size=len(names)))
    ids = dict(zip(names, new, strict=True))
    assert_only_ids_differ(before, identified(before, ids), ids)


def test_a_schema_of_unknown_fields_is_kept() -> None:
    """Fields of a later format stay where they are, before and after the id."""
    _, metadata = thrift.footer(lying_parquet.parquet())
    element = metadata[_SCHEMA][1][1][1]
    element |= {25: (8, b"later"), 40: (8, b"later")}  # the first 16 after the id
    metadata[99] = 8, b"later"
    after = thrift.read_struct(
        io.BytesIO(with_field_ids(thrift.written(metadata), {"id": 1, "name": 2}))
    )
    assert after[_SCHEMA][1][1][1] == {**element, _FIELD_ID: (5, 1)}
    assert after[99] == (8, b"later")


def _refused() -> Iterator[Any]:
    file = lying_parquet.parquet()
    _, footer = footer_of(file)
    ids = {"id": 1, "name": 2}
    yield pytest.param(footer, {"id": 1}, id="a column without an id")
    yield pytest.param(footer, {**ids, "more": 3}, id="an id without a column")
    yield pytest.param(footer, {"ID": 1, "name": 2}, id="another spelling")
    yield pytest.param(footer + bytes(28), ids, id="a signature")
    yield pytest.param(b"", ids, id="nothing")
    yield pytest.param(b"\0", ids, id="an empty struct")
    for fields, name in (
        ({8: (12, {1: (12, {})})}, "encrypted"),
        ({9: (8, b"key")}, "signed"),
        ({2: (8, b"text")}, "no list"),
        ({2: (9, (5, [1]))}, "no structs"),
        ({2: (9, (12, []))}, "no root"),
        ({2: (9, (12, [{5: (5, 2)}, {}, {}]))}, "no names"),
        ({2: (9, (12, [{5: (5, 2)}, {4: (5, 1)}, {4: (5, 2)}]))}, "numbers for names"),
        ({2: (9, (12, [{5: (5, 2)}, {4: (8, b"id")}, {4: (8, b"\xff")}]))}, "no UTF-8"),
    ):
        _, metadata = thrift.footer(file)
        yield pytest.param(thrift.written(metadata | fields), ids, id=name)
    nested = footer_of(written(pa.table({"id": [[1]], "name": ["a"]})))[1]
    yield pytest.param(nested, ids, id="items without an id")
    yield pytest.param(nested, {**ids, "id.list": 3, "id.list.element": 4}, id="an id of a group")
    twice = pa.table({"id": [{"a": 1}], "id.a": [1], "name": ["a"]})
    yield pytest.param(footer_of(written(twice))[1], {**ids, "id.a": 3}, id="two of one path")
    for children, name in ((9, "too few"), (1, "too many"), (2**31, "far too few")):
        _, metadata = thrift.footer(file)
        metadata[2][1][1][0][5] = 5, children
        yield pytest.param(thrift.written(metadata), ids, id=f"{name} elements")
    _, metadata = thrift.footer(file)
    metadata[2][1][1][1:] = [{4: (8, b"id"), 5: (5, 1)}] * 5000
    yield pytest.param(thrift.written(metadata), ids, id="too deep")


@pytest.mark.parametrize(("footer", "ids"), list(_refused()))
def test_what_is_not_understood_is_refused(footer: bytes, ids: dict[str, int]) -> None:
    """A footer of another shape is refused instead of changed."""
    with pytest.raises(ValueError, match=r"."):
        with_field_ids(footer, ids)


def test_a_part_of_a_footer_is_refused() -> None:
    """A footer that ends too early, anywhere, is refused."""
    _, footer = footer_of(lying_parquet.parquet())
    for end in range(len(footer)):
        with pytest.raises(ValueError, match=r"."):
            with_field_ids(footer[:end], {"id": 1, "name": 2})


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(footer: bytes) -> None:
    """Bytes that are no footer raise a ValueError and nothing else."""
    with pytest.raises(ValueError, match=r"."):
        with_field_ids(footer, {"id": 1})
