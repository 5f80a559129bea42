"""What a file says of itself, judged before a reader believes it, and hangs or dies. Pure."""

from collections.abc import Iterator
from typing import Any

from lakegate.errors import Permanent
from lakegate.limits import Limits
from spark_jobs.files.source import Bytes

# What Thrift wrote in its compact protocol: Parquet's footers, without Parquet's library. Pure.
#
# A struct is a dictionary of field id → value (Apache Thrift, "Thrift Compact protocol
# encoding").

_TRUE, _FALSE, _BYTE, _WHOLE, _DOUBLE, _BINARY = 1, 2, 3, (4, 5, 6), 7, 8
_LISTS, _STRUCT = (9, 10), 12
_DEEPEST = 20


class Compact:
    """A text in the protocol, read from its beginning. Raises ValueError where it is none."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def items(self, field: int) -> Iterator[Any]:
        """The items of the list that is a field of the struct that begins here, one at a time."""
        for id_, type_ in self._fields():
            if id_ == field and type_ in _LISTS:
                item, count = self._list()
                yield from (self._value(item, 1) for _ in range(count))
            else:
                self._value(type_, 1)

    def _fields(self) -> Iterator[tuple[int, int]]:
        id_ = 0
        while head := self._byte():
            id_ = id_ + (head >> 4) if head >> 4 else self._zigzag()
            yield id_, head & 15

    def _value(self, type_: int, depth: int) -> Any:
        if type_ in _WHOLE:
            return self._zigzag()
        if type_ == _BINARY:
            return self._bytes(self._varint())
        if type_ == _STRUCT and depth < _DEEPEST:
            return {id_: self._value(kind, depth + 1) for id_, kind in self._fields()}
        if type_ in _LISTS and depth < _DEEPEST:
            item, count = self._list()
            return [self._value(item, depth + 1) for _ in range(count)]
        return self._plain(type_)

    def _plain(self, type_: int) -> Any:
        sizes = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8}
        if type_ not in sizes:
            raise ValueError(f"there is no type {type_} here")
        return self._bytes(sizes[type_])

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        count = self._varint() if head >> 4 == 15 else head >> 4
        if count > len(self._data) - self._at:  # no item has less than one byte
            raise ValueError(f"a list of {count:,} items is longer than the text")
        return head & 15, count

    def _byte(self) -> int:
        self._at += 1
        try:
            return self._data[self._at - 1]
        except IndexError:
            raise ValueError("it ends too early") from None

    def _bytes(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) < count:
            raise ValueError("it ends too early")
        self._at += count
        return found

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a number has no end")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)


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
