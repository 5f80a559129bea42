"""Read Thrift's compact protocol, in which Parquet writes its footers. Pure.

A struct is read as a dictionary of field id → value (Apache Thrift, "Thrift Compact protocol
encoding").
"""

from collections.abc import Iterator
from typing import Any

_TRUE, _FALSE, _BYTE, _WHOLE, _DOUBLE, _BINARY = 1, 2, 3, (4, 5, 6), 7, 8
_LISTS, _STRUCT = (9, 10), 12
_DEEPEST = 20


class Compact:
    """Thrift's compact protocol, read from its beginning; raises ValueError on invalid data."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = data
        self._at = 0

    def fields(self, listed: int) -> Iterator[tuple[int, Any]]:
        """Yield each field of the struct that begins here: its id and its value.

        Of the list in the field `listed` each item is yielded, one at a time.
        """
        for id_, type_ in self._fields():
            if id_ == listed and type_ in _LISTS:
                item, count = self._list()
                yield from ((id_, self._item(item, 1)) for _ in range(count))
            else:
                yield id_, self._value(type_, 1)

    def struct(self) -> dict[int, Any]:
        """Return the struct that begins here."""
        return {id_: self._value(kind, 1) for id_, kind in self._fields()}

    @property
    def position(self) -> int:
        """Return how many bytes have been read."""
        return self._at

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
            return [self._item(item, depth + 1) for _ in range(count)]
        return self._plain(type_)

    def _item(self, type_: int, depth: int) -> Any:
        """Return a list's next item; unlike a field's, a boolean there has a byte of its own."""
        return self._byte() == _TRUE if type_ in (_TRUE, _FALSE) else self._value(type_, depth)

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
        part = bytes(self._data[self._at : self._at + count])
        if len(part) < count:
            raise ValueError("it ends too early")
        self._at += count
        return part

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
