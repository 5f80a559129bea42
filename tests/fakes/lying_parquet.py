"""Parquet files with false metadata."""

import io
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.fakes.thrift import Struct, footer, read_struct, with_footer, written

# parquet.thrift: SchemaElement, FileMetaData, RowGroup, ColumnMetaData, PageHeader.
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
TERA = 10**12


def parquet(codec: str = "none") -> bytes:
    """Return three valid rows with the columns id and name."""
    file = io.BytesIO()
    rows = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
    pq.write_table(rows, file, compression=codec, use_dictionary=False)
    return file.getvalue()


def promising(rows: int, values: int) -> bytes:
    """Return a file that claims this number of rows, and this number of values in each column."""

    def promise(metadata: Struct) -> None:
        metadata[3] = _I64, rows
        for group in groups(metadata):
            group[3] = _I64, rows
        for chunk in chunks(metadata):
            chunk[5] = _I64, values

    return changed(promise)


def placed(**fields: int) -> bytes:
    """Return a file whose column chunks have other offsets or sizes."""
    ids = {"unpacked": 6, "packed": 7, "data": 9}

    def place(metadata: Struct) -> None:
        for chunk in chunks(metadata):
            for name, value in fields.items():
                chunk[ids[name]] = _I64, value

    return changed(place)


def renamed(name: bytes) -> bytes:
    """Return a file whose row group has the first column under this name, unlike its schema."""

    def rename(metadata: Struct) -> None:
        next(chunks(metadata))[3] = _LIST, (_BINARY, [name])

    return changed(rename)


def declared(body: bytes, column: str, logical: Struct, converted: int, **more: int) -> bytes:
    """Return a file that declares another logical type of a column for the same values.

    `scale` and `precision` may be given as well.
    """
    before, metadata = footer(body)
    (element,) = (each for each in metadata[2][1][1] if each[4][1] == column.encode())
    element[6], element[10] = (_I32, converted), (_STRUCT, logical)
    for name, id_ in {"scale": 7, "precision": 8}.items():
        if name in more:
            element[id_] = _I32, more[name]
    return with_footer(before, metadata)


def whole(bits: int, *, signed: bool) -> Struct:
    """Return the logical type of integers with so many bits."""
    return {10: (_STRUCT, {1: (3, bytes([bits])), 2: (1 if signed else 2, None)})}


def digits(precision: int, scale: int) -> Struct:
    """Return the logical type of decimals."""
    return {5: (_STRUCT, {1: (_I32, scale), 2: (_I32, precision)})}


def wide(columns: int) -> bytes:
    """Return a file with this number of columns and no row."""

    def widen(metadata: Struct) -> None:
        root = {4: (_BINARY, b"schema"), 5: (_I32, columns)}
        names = [b"c%d" % n for n in range(columns)]
        leaves = [{1: (_I32, 2), 3: (_I32, 1), 4: (_BINARY, name)} for name in names]
        metadata[2] = _LIST, (_STRUCT, [root, *leaves])
        metadata[3], metadata[4] = (_I64, 0), (_LIST, (_STRUCT, []))
        for id_ in [id_ for id_ in metadata if id_ > 4]:
            del metadata[id_]

    return changed(widen)


def with_page(codec: str, unpacked: int) -> bytes:
    """Return a file whose first page claims this uncompressed size in bytes."""
    before, metadata = footer(parquet(codec))
    chunk = next(chunks(metadata))
    start, length = chunk[9][1], chunk[7][1]
    page = io.BytesIO(before[start : start + length])
    head = read_struct(page)
    head[2] = _I32, unpacked
    head.pop(4, None)  # its checksum
    made = written(head) + page.read()
    chunk[9], chunk[7] = (_I64, len(before)), (_I64, len(made))
    return with_footer(before + made, metadata)


def old_lz4(values: list[int], *, framed: bool) -> bytes:
    """Return a column `a` in Parquet's first LZ4 codec: framed as Hadoop does, or not at all."""
    file = io.BytesIO()
    pq.write_table(pa.table({"a": values}), file, compression="lz4", use_dictionary=False)
    before, metadata = footer(file.getvalue())
    (chunk,) = chunks(metadata)
    page = io.BytesIO(before[chunk[9][1] :])
    head = read_struct(page)
    packed = page.read(head[3][1])
    if framed:
        packed = head[2][1].to_bytes(4, "big") + len(packed).to_bytes(4, "big") + packed
    head[3] = _I32, len(packed)
    made = written(head) + packed
    chunk[4], chunk[9], chunk[7] = (_I32, 5), (_I64, len(before)), (_I64, len(made))
    return with_footer(before + made, metadata)


def changed(change: Callable[[Struct], None]) -> bytes:
    """Return the valid rows under a changed footer."""
    before, metadata = footer(parquet())
    other = deepcopy(metadata)
    change(other)
    return with_footer(before, other)


def groups(metadata: Struct) -> list[Struct]:
    """Return the row groups."""
    found: list[Struct] = metadata[4][1][1]
    return found


def chunks(metadata: Struct) -> Iterator[Any]:
    """Return each column chunk's own metadata."""
    return (chunk[3][1] for group in groups(metadata) for chunk in group[1][1][1])


def swapped(body: bytes) -> bytes:
    """Return a file, without dictionaries, whose first two columns lie in the other order."""
    before, metadata = footer(body)
    for group in groups(metadata):
        first, second = (chunk[3][1] for chunk in group[1][1][1][:2])
        (at, one), (_, other) = ((each[9][1], each[7][1]) for each in (first, second))
        pages = before[at : at + one + other]
        before = before[:at] + pages[one:] + pages[:one] + before[at + one + other :]
        second[9], first[9] = (_I64, at), (_I64, at + other)
    return with_footer(before, metadata)


def grafted(one: bytes, other: bytes, number: int) -> bytes:
    """Return a file with the pages of a column chunk, by its number, from another file."""
    pages, metadata = footer(one)
    others, foreign = footer(other)
    own, given = ([*_whole_chunks(each)][number] for each in (metadata, foreign))
    own[3] = deepcopy(given[3])
    for place in (9, 11):
        if place in own[3][1]:
            own[3][1][place] = _I64, own[3][1][place][1] + len(pages)
    return with_footer(pages + others, metadata)


def _whole_chunks(metadata: Struct) -> Iterator[Any]:
    return (chunk for group in groups(metadata) for chunk in group[1][1][1])
