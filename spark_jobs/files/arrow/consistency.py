"""Refuse a Parquet footer that contradicts itself or exceeds the limits. Pure.

A reader makes the rows that a footer declares, even without values for them, and allocates the
sizes that it declares: a lying footer hangs or kills the job.

Readers believe different parts of a footer, so such a file has other rows for each of them, and
Spark leaves rows out in silence.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from lakegate.errors import Permanent
from lakegate.limits import Limits
from spark_jobs.files.arrow.places import elements
from spark_jobs.files.arrow.thrift import Compact
from spark_jobs.files.limits import check_rows

if TYPE_CHECKING:
    from spark_jobs.files.source import Bytes

# Field ids of parquet.thrift: FileMetaData, SchemaElement, RowGroup, ColumnChunk, ColumnMetaData.
_SCHEMA, _ROWS, _ROW_GROUPS = 2, 3, 4
_TYPE, _REPETITION = 1, 3
_CHUNKS, _GROUP_ROWS, _GROUP_PACKED = 1, 3, 6
_META = 3
_META_TYPE, _PATH, _VALUES, _UNPACKED, _PACKED, _DATA, _DICTIONARY = 1, 3, 5, 6, 7, 9, 11
_SIZES, _TEXT_BYTES, _REPETITIONS, _DEFINITIONS = 16, 1, 2, 3  # SizeStatistics
_CODEC, _CONVERTED = 4, 6
_BYTE_ARRAY, _REQUIRED, _REPEATED = 6, 0, 2
# How many values parquet.thrift has: Arrow ends the whole process on some others.
_TYPES, _REPETITION_TYPES, _CODECS, _CONVERTED_TYPES = 8, 3, 8, 22
_MAGIC, _FOOTER_END = 4, 8  # bytes before the first page, and after the footer
_USUAL_FOOTER = 64 * 1024  # bytes that one request reads, and most footers do not exceed


class _Leaf(NamedTuple):
    """A column that has values: where it is in the schema, and the highest of its levels."""

    path: list[bytes]
    type: int
    repetition: int
    definition: int


class _Extent(NamedTuple):
    """Where pages begin and end in the file."""

    start: int
    end: int


def parquet_footer(file: "Bytes") -> bytes:
    """Return a Parquet file's footer, without its length and the magic.

    Raises Permanent CORRUPT_FILE if the file is too short for it.
    """
    usual = min(_USUAL_FOOTER, file.size)
    end = file.range(file.size - usual, usual)
    length = int.from_bytes(end[-_FOOTER_END:][:4], "little")
    start = file.size - length - _FOOTER_END
    if start < 0:
        raise damaged("its footer is longer than the file")
    if length + _FOOTER_END > usual:
        return file.range(start, length)
    return end[start - file.size : -_FOOTER_END]


def check_parquet(footer: bytes, size: int, limits: Limits) -> None:
    """Refuse a Parquet file of so many bytes whose footer is false or exceeds the limits.

    Raises Permanent CORRUPT_FILE, TOO_MANY_ROWS or ZIP_BOMB.
    """
    rows, unpacked = _counted(footer, size)
    check_rows(rows, limits)
    if unpacked > limits.largest_unpacked:
        message = (
            f"{size:,} bytes of Parquet uncompress to {unpacked:,}, more than the limit "
            f"LargestUnpacked of {limits.largest_unpacked:,}: this may be a zip bomb"
        )
        raise Permanent("ZIP_BOMB", message)


@lru_cache(maxsize=2)  # a file is checked before Arrow reads it, and again before Spark does
def _counted(footer: bytes, size: int) -> tuple[int, int]:
    """Return the rows of a Parquet file of so many bytes, and the size of its uncompressed pages.

    Raises Permanent CORRUPT_FILE if its footer is invalid or contradicts itself.
    """
    try:
        return _read(footer, size)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise damaged(f"its footer cannot be read: {error!r}") from error


def _read(footer: bytes, size: int) -> tuple[int, int]:
    rows = unpacked = 0
    leaves: list[_Leaf] = []
    extents: list[_Extent] = []
    declared = None
    for id_, value in Compact(footer).fields(_ROW_GROUPS):
        if id_ == _SCHEMA:
            leaves = list(_leaves(value))
        elif id_ == _ROWS:
            declared = value
        elif id_ == _ROW_GROUPS:
            rows += value[_GROUP_ROWS]
            unpacked += sum(chunk[_META][_UNPACKED] for chunk in value[_CHUNKS])
            extents += _checked(value, leaves, size)
    if rows != declared:
        raise damaged(f"its row groups have {rows:,} rows, but the file declares {declared:,}")
    _require_apart(extents, size - len(footer) - _FOOTER_END)
    return rows, unpacked


def _leaves(schema: list[dict[int, Any]]) -> Iterator[_Leaf]:
    """Yield the columns that have values, in the order in which each row group must have them."""
    tree = elements(schema)
    kinds = {path: each.get(_REPETITION, _REQUIRED) for path, each in tree}
    for path, element in tree:
        _require_known(element.get(_REPETITION, _REQUIRED), _REPETITION_TYPES, "repetition")
        _require_known(element.get(_CONVERTED, 0), _CONVERTED_TYPES, "converted type")
        if _TYPE in element:
            _require_known(element[_TYPE], _TYPES, "type")
            within = [kinds[path[:length]] for length in range(1, len(path) + 1)]
            names = [name.encode() for name in path]
            optional = len(within) - within.count(_REQUIRED)
            yield _Leaf(names, element[_TYPE], within.count(_REPEATED), optional)


def _checked(group: dict[int, Any], leaves: Sequence[_Leaf], size: int) -> Iterator[_Extent]:
    """Yield where the pages of a row group are."""
    chunks, rows = [chunk[_META] for chunk in group[_CHUNKS]], group[_GROUP_ROWS]
    if [(chunk[_PATH], chunk[_META_TYPE]) for chunk in chunks] != [each[:2] for each in leaves]:
        raise damaged("a row group has other columns than its schema, or in another order")
    for chunk, leaf in zip(chunks, leaves, strict=True):
        if min(rows, chunk[_PACKED], chunk[_UNPACKED], chunk[_VALUES]) < 0:
            raise damaged("a size in its footer is negative")
        if chunk[_VALUES] < rows or (not leaf.repetition and chunk[_VALUES] > rows):
            raise damaged(f"a column has {chunk[_VALUES]:,} values for {rows:,} rows")
        _require_known(chunk[_CODEC], _CODECS, "compression")
        _require_levels(chunk.get(_SIZES, {}), leaf)
        if rows:
            yield _extent(chunk)
    if rows:
        _require_within(group, chunks, size)


def _require_known(value: int, count: int, what: str) -> None:
    if not 0 <= value < count:
        raise damaged(f"a column has the {what} {value}, which Parquet does not know")


def _require_levels(sizes: dict[int, Any], leaf: _Leaf) -> None:
    """Refuse counts of levels that a column does not have: Arrow ends the whole process on them."""
    highest = {_REPETITIONS: leaf.repetition, _DEFINITIONS: leaf.definition}
    if any(sizes.get(id_) and len(sizes[id_]) != most + 1 for id_, most in highest.items()):
        raise damaged("a column has counts of levels that it does not have")
    if _TEXT_BYTES in sizes and leaf.type != _BYTE_ARRAY:
        raise damaged("a column without texts has the size of its texts")


def _extent(chunk: dict[int, Any]) -> _Extent:
    start = min(filter(None, (chunk[_DATA], chunk.get(_DICTIONARY))))
    end = start + chunk[_PACKED]
    if not start <= chunk[_DATA] <= end:
        raise damaged("a column lies outside of its own pages")
    return _Extent(start, end)


def _require_within(group: dict[int, Any], chunks: list[dict[int, Any]], size: int) -> None:
    """Refuse a row group of a size by which Spark places its middle outside of the file.

    Spark reads a row group with the part of the file that has its middle, so it would skip it.
    """
    total = sum(chunk[_PACKED] for chunk in chunks)
    said = group.get(_GROUP_PACKED, total)
    if said != total and not 0 <= _extent(chunks[0]).start + said // 2 < size:
        raise damaged(f"a row group has {total:,} bytes, but declares {said:,}")


def _require_apart(extents: list[_Extent], end: int) -> None:
    """Refuse pages that overlap, or lie outside of the file's part for pages."""
    ordered = sorted(each for each in extents if each.start < each.end)
    if ordered and (ordered[0].start < _MAGIC or max(each.end for each in ordered) > end):
        raise damaged("a column lies outside of the file's pages")
    if any(one.end > other.start for one, other in pairwise(ordered)):
        raise damaged("two columns lie at the same place")


def damaged(how: str) -> Permanent:
    """Return the error of a Parquet file that contradicts itself."""
    return Permanent("CORRUPT_FILE", f"the Parquet file is damaged: {how}")
