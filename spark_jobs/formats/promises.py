"""What a file says of itself, judged before a reader believes it, and hangs or dies. Pure."""

from typing import Any

from lakegate.errors import Permanent
from lakegate.limits import Limits
from spark_jobs.formats.source import Bytes
from spark_jobs.formats.thrift import Compact

# parquet.thrift: the fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_ROW_GROUPS, _CHUNKS, _ROWS, _META = 4, 1, 3, 3
_VALUES, _UNPACKED, _PACKED, _DATA, _DICTIONARY = 5, 6, 7, 9, 11
_END = 8  # bytes after the footer: its length, and the magic


def check_columns(count: int, limits: Limits) -> None:
    """Refuse a file with more columns than are taken. Raises Permanent TOO_MANY_COLUMNS."""
    if count > limits.most_columns:
        message = f"the file has more columns than the {limits.most_columns:,} that are taken"
        raise Permanent("TOO_MANY_COLUMNS", f"{message}: the limit is MostColumns")


def check_rows(count: int, limits: Limits) -> None:
    """Refuse a file that says that it has more rows than are taken. Raises Permanent."""
    if not 0 <= count <= limits.most_rows:
        message = f"the file says that it has {count:,} rows, and {limits.most_rows:,} at most are"
        raise Permanent("TOO_MANY_ROWS", f"{message} taken: the limit is MostRows")


def check_line(length: int, limits: Limits) -> None:
    """Refuse a text with a line of so many bytes. Raises Permanent LINE_TOO_LONG."""
    if length > limits.longest_line:
        message = f"a line of it has more than the {limits.longest_line:,} bytes that are taken"
        raise Permanent("LINE_TOO_LONG", f"{message}: the limit is LongestLine")


def check_array(size: int, limits: Limits) -> None:
    """Refuse a JSON text of so many bytes that is one array. Raises Permanent TOO_LARGE."""
    if size > limits.largest_array:
        message = f"an array of more than {limits.largest_array:,} bytes is not read whole"
        raise Permanent("TOO_LARGE", f"{message}: write one object a line, or raise LargestArray")


def check_parquet(file: Bytes, limits: Limits) -> int:
    """Refuse a Parquet file whose footer cannot be true of it, or promises too much.

    Returns what its pages unpack to, in bytes. What a footer says of rows its reader makes, though
    there are no values for them, and what it says of sizes is allocated. Raises Permanent
    CORRUPT_FILE, TOO_MANY_ROWS or ZIP_BOMB.
    """
    length = int.from_bytes(file.tail(_END)[:4], "little")
    if length + _END > file.size:
        raise _damaged("its footer would be longer than the file")
    rows = unpacked = 0
    try:
        for group in Compact(file.tail(length + _END)[:-_END]).items(_ROW_GROUPS):
            rows += group[_ROWS]
            unpacked += sum(_checked(c[_META], group[_ROWS], file.size) for c in group[_CHUNKS])
    except (ValueError, LookupError, TypeError) as error:
        raise _damaged(f"its footer cannot be read: {error!r}") from error
    check_rows(rows, limits)
    if unpacked > limits.largest_unpacked:
        message = f"{file.size:,} bytes of Parquet unpack to {unpacked:,}, and at most"
        message = f"{message} {limits.largest_unpacked:,} are taken: is this a zip bomb?"
        raise Permanent("ZIP_BOMB", f"{message} The limit is LargestUnpacked")
    return unpacked


def _checked(chunk: dict[int, Any], rows: int, size: int) -> int:
    """What a column chunk unpacks to, in bytes."""
    start = min(filter(None, (chunk[_DATA], chunk.get(_DICTIONARY))))
    if min(start, rows, chunk[_PACKED], chunk[_UNPACKED]) < 0:
        raise _damaged("a size in its footer is below zero")
    if start + chunk[_PACKED] > size:
        raise _damaged("a column would lie behind the file's end")
    if chunk[_VALUES] < rows:
        raise _damaged(f"a column has {chunk[_VALUES]:,} values for {rows:,} rows")
    return int(chunk[_UNPACKED])


def _damaged(how: str) -> Permanent:
    return Permanent("CORRUPT_FILE", f"the Parquet file is damaged: {how}")
