"""Enforce the limits, and check a Parquet footer before a reader believes it. Pure.

A reader makes the rows that a footer declares, even without values for them, and allocates the
sizes that it declares: a lying footer hangs or kills the job.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lakegate.errors import Permanent
from lakegate.limits import Limits

if TYPE_CHECKING:  # drafts of contracts read CSV without Spark
    from spark_jobs.files.source import Bytes

# Parquet's footers are written in Thrift's compact protocol. A struct is read as a dictionary of
# field id → value (Apache Thrift, "Thrift Compact protocol encoding").

_TRUE, _FALSE, _BYTE, _WHOLE, _DOUBLE, _BINARY = 1, 2, 3, (4, 5, 6), 7, 8
_LISTS, _STRUCT = (9, 10), 12
_DEEPEST = 20


class Compact:
    """Thrift's compact protocol, read from its beginning; raises ValueError on invalid data."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def items(self, field: int) -> Iterator[Any]:
        """Yield the items of the list in a field of the struct that begins here, one at a time."""
        for id_, type_ in self._fields():
            if id_ == field and type_ in _LISTS:
                item, count = self._list()
                yield from (self._value(item, 1) for _ in range(count))
            else:
                self._value(type_, 1)

    def struct(self) -> dict[int, Any]:
        """Return the struct that begins here."""
        return {id_: self._value(kind, 1) for id_, kind in self._fields()}

    def parts(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield each field of the struct that begins here: its id, its type, its value's bytes."""
        for id_, type_ in self._fields():
            start = self._at
            self._value(type_, 1)
            yield id_, type_, self._data[start : self._at]

    def structs(self) -> Iterator[bytes]:
        """Yield the bytes of each struct in the list that begins here."""
        item, count = self._list()
        for _ in range(count):
            start = self._at
            if item != _STRUCT:
                raise ValueError("a list of structs has other items")
            self._value(item, 1)
            yield self._data[start : self._at]

    def end(self) -> None:
        """Raise ValueError if the data goes on."""
        if self._at < len(self._data):
            raise ValueError("it goes on after its end")

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
        if type_ in (_TRUE, _FALSE):
            return type_ == _TRUE
        sizes = {_BYTE: 1, _DOUBLE: 8}
        if type_ not in sizes:
            raise ValueError(f"{type_} is not a type")
        return self._bytes(sizes[type_])

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        count = self._varint() if head >> 4 == 15 else head >> 4
        if count > len(self._data) - self._at:  # no item has less than one byte
            raise ValueError(f"a list of {count:,} items is longer than the footer")
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


# Field ids of parquet.thrift: FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_ROW_GROUPS, _CHUNKS, _ROWS, _META = 4, 1, 3, 3
_VALUES, _UNPACKED, _PACKED, _DATA, _DICTIONARY = 5, 6, 7, 9, 11
FOOTER_END = 8  # bytes after the footer: its length, and the magic
_USUAL_FOOTER = 64 * 1024  # bytes that one request reads, and most footers do not exceed


def check_columns(count: int, limits: Limits) -> None:
    """Refuse a file with too many columns. Raises Permanent TOO_MANY_COLUMNS."""
    if count > limits.most_columns:
        message = f"the file has more than {limits.most_columns:,} columns, the limit MostColumns"
        raise Permanent("TOO_MANY_COLUMNS", message)


def check_rows(count: int, limits: Limits) -> None:
    """Refuse a file that declares too many rows. Raises Permanent TOO_MANY_ROWS."""
    if not 0 <= count <= limits.most_rows:
        message = f"the file declares {count:,} rows; the limit MostRows is {limits.most_rows:,}"
        raise Permanent("TOO_MANY_ROWS", message)


def check_line(length: int, limits: Limits) -> None:
    """Refuse a text with a line that is too long. Raises Permanent LINE_TOO_LONG."""
    if length > limits.longest_line:
        message = f"a line has more than {limits.longest_line:,} bytes, the limit LongestLine"
        raise Permanent("LINE_TOO_LONG", message)


def check_array(size: int, limits: Limits) -> None:
    """Refuse a JSON array that is too large to be read as a whole. Raises Permanent TOO_LARGE."""
    if size > limits.largest_array:
        message = (
            f"the array has more than {limits.largest_array:,} bytes: write one object a line, or "
            "raise the limit LargestArray"
        )
        raise Permanent("TOO_LARGE", message)


def parquet_footer(file: "Bytes") -> bytes:
    """Return a Parquet file's footer, without its length and the magic.

    Raises Permanent CORRUPT_FILE if the file is too short for it.
    """
    end = file.tail(min(_USUAL_FOOTER, file.size))
    length = int.from_bytes(end[-FOOTER_END:][:4], "little")
    if length + FOOTER_END > file.size:
        raise _damaged("its footer is longer than the file")
    whole = end if length + FOOTER_END <= len(end) else file.tail(length + FOOTER_END)
    return whole[-length - FOOTER_END : -FOOTER_END]


def check_parquet(footer: bytes, size: int, limits: Limits) -> int:
    """Refuse a Parquet file of so many bytes whose footer is invalid or exceeds the limits.

    Returns the size of its uncompressed pages in bytes. Raises Permanent CORRUPT_FILE,
    TOO_MANY_ROWS or ZIP_BOMB.
    """
    rows = unpacked = 0
    try:
        for group in Compact(footer).items(_ROW_GROUPS):
            rows += group[_ROWS]
            unpacked += sum(_checked(c[_META], group[_ROWS], size) for c in group[_CHUNKS])
    except (ValueError, LookupError, TypeError) as error:
        raise _damaged(f"its footer cannot be read: {error!r}") from error
    check_rows(rows, limits)
    if unpacked > limits.largest_unpacked:
        message = (
            f"{size:,} bytes of Parquet uncompress to {unpacked:,}, more than the limit "
            f"LargestUnpacked of {limits.largest_unpacked:,}: this may be a zip bomb"
        )
        raise Permanent("ZIP_BOMB", message)
    return unpacked


def _checked(chunk: dict[int, Any], rows: int, size: int) -> int:
    """Return the uncompressed size of a column chunk in bytes."""
    start = min(filter(None, (chunk[_DATA], chunk.get(_DICTIONARY))))
    if min(start, rows, chunk[_PACKED], chunk[_UNPACKED]) < 0:
        raise _damaged("a size in its footer is negative")
    if start + chunk[_PACKED] > size:
        raise _damaged("a column lies beyond the end of the file")
    if chunk[_VALUES] < rows:
        raise _damaged(f"a column has {chunk[_VALUES]:,} values for {rows:,} rows")
    return int(chunk[_UNPACKED])


def _damaged(how: str) -> Permanent:
    return Permanent("CORRUPT_FILE", f"the Parquet file is damaged: {how}")
