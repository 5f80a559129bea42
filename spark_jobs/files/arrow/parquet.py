"""Decode a Parquet file with Arrow, one row group at a time.

Only the bytes of one row group are requested at once, from exactly the landed version. Every page
is decoded and its checksum verified. Of the footer only the columns' types and the places of their
pages are believed: what it counts is compared with what is found, and its statistics are not read.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_jobs.files.arrow.text_sizes import most_bytes
from spark_jobs.files.source import Bytes
from spark_jobs.files.stream import Stream

_DAYS = (date.min - date(1970, 1, 1)).days, (date.max - date(1970, 1, 1)).days + 1
# The first day or moment of the year 1 and of the year 10000, by the type or the unit of values.
_YEARS: Mapping[object, tuple[int, int]] = {
    pa.date32(): _DAYS,
    **{
        unit: (_DAYS[0] * 86_400 * parts, _DAYS[1] * 86_400 * parts)
        for unit, parts in {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}.items()
    },
}


MAGIC = b"PAR1"
MOST_TEXT = 512 << 20  # bytes of the texts of one row group
# What a writer of Arrow's noted about its own schema: Arrow believes it rather than the columns'
# own description. A name of the same length hides it, wherever it stands.
_NOTE, _NO_NOTE = b"ARROW:schema", b"_other_note_"


class MustRewrite(Exception):
    """Arrow cannot be sure to read a file as Spark does; the text says why, for the report."""


class Damaged(MustRewrite):
    """Arrow finds damage in a file's pages. Spark overlooks some, so its rows are not published."""


def file_end(footer: bytes) -> bytes:
    """Return how a Parquet file with this footer ends: the footer, its length and the magic."""
    return footer + len(footer).to_bytes(4, "little") + MAGIC


def metadata_of(footer: bytes) -> pq.FileMetaData:
    """Return what a footer says, without Arrow's own note. Raises ArrowException, OSError."""
    without_pages = MAGIC + file_end(footer.replace(_NOTE, _NO_NOTE))
    return pq.read_metadata(io.BytesIO(without_pages))


@dataclass(frozen=True)
class ArrowFile:
    """A landed Parquet file; `footer` is the Thrift structure, without its length and the magic.

    Raises MustRewrite where Arrow cannot read it.
    """

    file: Bytes
    footer: bytes
    metadata: pq.FileMetaData = field(init=False)

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "metadata", metadata_of(self.footer))
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(error) from error

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the types of the columns. Raises MustRewrite for one that Arrow does not have."""
        try:
            return self.metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(error) from error

    def row_group(self, number: int, columns: Sequence[str]) -> pa.Table:
        """Return all rows of a row group, with these columns.

        Raises Damaged if Arrow finds the row group damaged, MustRewrite if it cannot read it.
        """
        group = self.metadata.row_group(number)
        if not group.num_rows:  # writers give it no pages, or places of none
            return self.schema.empty_table().select(columns)
        start, end = _extent(group)
        body = self.file.range(start, end - start)
        _require_bounded(group, memoryview(body), start)
        try:
            reader = pq.ParquetFile(
                pa.PythonFile(pages_of(body, start), "r"),
                metadata=self.metadata,
                page_checksum_verification=True,
            )
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(error) from error
        leaves = self._leaves
        return pa.table({name: _column(reader, number, name, leaves[name]) for name in columns})

    @cached_property
    def _leaves(self) -> Mapping[str, list[str]]:
        """Return the paths of each column's leaves, which the file has in the columns' order.

        A path alone does not tell: a column may be called `a.b` beside a struct `a`.
        """
        paths = iter([column.path for column in self.metadata.schema])
        return {each.name: list(islice(paths, _leaf_count(each.type))) for each in self.schema}


def _leaf_count(type_: pa.DataType) -> int:
    if not pa.types.is_nested(type_):
        return 1
    return sum(_leaf_count(type_.field(number).type) for number in range(type_.num_fields))


def _require_bounded(group: pq.RowGroupMetaData, body: memoryview, start: int) -> None:
    """Raise MustRewrite if a row group's texts may not fit into memory: Spark reads row by row."""
    left = MOST_TEXT
    for chunk in map(group.column, range(group.num_columns)):
        if chunk.physical_type == "BYTE_ARRAY":
            at = page_start(chunk) - start
            pages = body[at : at + chunk.total_compressed_size]
            try:
                left -= most_bytes(pages, chunk.compression.lower(), left)
            except ValueError as error:
                raise MustRewrite(f"{chunk.path_in_schema}: {error}") from error
        if left < 0:
            raise MustRewrite(f"its column {chunk.path_in_schema} may have too much text")


def _column(
    reader: pq.ParquetFile, number: int, column: str, leaves: Sequence[str]
) -> pa.ChunkedArray:
    """Return a column's values; the parts of a nested one, its `leaves`, are compared before."""
    by_leaf = {leaf: _read(reader, number, leaf) for leaf in leaves}
    _require_counts(reader.metadata.row_group(number), column, by_leaf)
    for leaf, values in by_leaf.items():
        _require_years(values, leaf)
    return by_leaf[column] if column in by_leaf else _read(reader, number, column)


def _read(reader: pq.ParquetFile, number: int, path: str) -> pa.ChunkedArray:
    """Return the values of a column, or of a leaf within the structs, lists and maps around it."""
    try:
        table = reader.read_row_group(number, columns=[path], use_threads=False)
    except (pa.ArrowInvalid, OSError) as error:
        raise Damaged(f"a page of its column {path} cannot be decoded") from error
    except pa.ArrowException as error:
        raise _unreadable(error) from error
    if table.num_rows != reader.metadata.row_group(number).num_rows or table.num_columns != 1:
        raise Damaged("Arrow finds other rows or columns than the footer declares")
    if pa.types.is_nested(type_ := table.schema.types[0]) or pa.types.is_decimal(type_):
        _require_valid(table, path)
    return table.column(0)


def _require_years(values: pa.ChunkedArray, leaf: str) -> None:
    """Raise MustRewrite for a date or time outside the years 1 to 9999: Spark finds the rows."""
    for array in map(innermost, values.chunks):
        limits = _YEARS.get(array.type.unit if pa.types.is_timestamp(array.type) else array.type)
        if limits and not _is_within(array, *limits):
            raise MustRewrite(f"{leaf} has times outside the years 1 to 9999")


def innermost(array: pa.Array) -> pa.Array:
    """Return the values of a leaf within the structs, lists and maps around it."""
    while pa.types.is_nested(array.type):
        array = array.flatten()[0] if pa.types.is_struct(array.type) else array.flatten()
    return array


def _is_within(array: pa.Array, first: int, end: int) -> bool:
    counted = array.view(pa.int32() if pa.types.is_date32(array.type) else pa.int64())
    ends = pc.min_max(counted)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    return least is None or (least >= first and most < end)


def _require_valid(table: pa.Table, leaf: str) -> None:
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        raise MustRewrite(f"{leaf} has no valid values, such as text that is not UTF-8") from error


def _require_counts(
    group: pq.RowGroupMetaData, column: str, by_leaf: Mapping[str, pa.ChunkedArray]
) -> None:
    """Raise Damaged unless the footer counts the values that there are in a column's leaves.

    Leaves of one struct, list or map must also agree where it is null, and how long: otherwise
    each reader makes other rows of them.
    """
    chunks = (group.column(number) for number in range(group.num_columns))
    declared = {chunk.path_in_schema: chunk.num_values for chunk in chunks}
    agreed: dict[str, pa.Array] = {}
    for leaf, values in by_leaf.items():
        count = group.num_rows
        for place, around in _around(column, values):
            if not agreed.setdefault(place, around).equals(around):
                raise Damaged(f"the parts of its column {place} do not belong together")
            if pa.types.is_integer(around.type):  # a list without items has a value, too
                items = pc.filter(around, pc.greater(around, 0))
                count += pc.sum(items, min_count=0).as_py() - len(items)
        if declared[leaf] != count:
            raise Damaged(f"its footer declares another number of values for {leaf}")


def _around(place: str, values: pa.ChunkedArray) -> Iterator[tuple[str, pa.Array]]:
    """Yield what is around a leaf's values: of a struct if it is there, of others their lengths."""
    if not pa.types.is_nested(values.type):
        return
    array = pa.concat_arrays(values.chunks)
    while pa.types.is_nested(array.type):
        if pa.types.is_struct(array.type):
            yield place, array.is_valid()
            place, array = f"{place}.{array.type.field(0).name}", array.flatten()[0]
        else:
            yield place, array.value_lengths()
            place, array = f"{place}[]", array.flatten()


def _extent(group: pq.RowGroupMetaData) -> tuple[int, int]:
    """Return where the pages of a row group begin and end in the file."""
    chunks = [group.column(number) for number in range(group.num_columns)]
    starts = [page_start(chunk) for chunk in chunks]
    sizes = [chunk.total_compressed_size for chunk in chunks]
    return min(starts), max(start + size for start, size in zip(starts, sizes, strict=True))


def page_start(chunk: pq.ColumnChunkMetaData) -> int:
    """Return where the first page of a column begins in the file."""
    return int(min(filter(None, (chunk.data_page_offset, chunk.dictionary_page_offset))))


def _unreadable(error: Exception) -> MustRewrite:
    return MustRewrite(f"Arrow cannot read it ({type(error).__name__})")


def pages_of(body: bytes, start: int) -> Stream:
    """Return a part of a file, at the places that it has in the whole file."""
    view = memoryview(body)

    def read_at(at: int, size: int) -> bytes:
        if at < start:
            raise OSError("a page lies outside of its row group")
        return bytes(view[at - start : at - start + size])

    return Stream(start + len(body), read_at, start)
