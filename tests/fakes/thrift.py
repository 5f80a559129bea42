"""Read and write Parquet's metadata, to make files with false metadata.

Thrift's compact protocol (Apache Thrift, "Thrift Compact protocol encoding"), as far as Parquet's
footers and page headers use it: a struct is a dictionary of field id → (type, value).
"""

import io
from typing import Any

Struct = dict[int, tuple[int, Any]]
_BOOLEANS, _BYTE, _WHOLE, _DOUBLE, _BINARY, _LISTS, _STRUCT = (
    (1, 2),
    3,
    (4, 5, 6),
    7,
    8,
    (9, 10),
    12,
)


def read_struct(file: io.BytesIO) -> Struct:
    """Return the struct that begins here."""
    fields: Struct = {}
    id_ = 0
    while head := file.read(1)[0]:
        id_ = id_ + (head >> 4) if head >> 4 else _zigzag(_varint(file))
        fields[id_] = head & 15, _value(file, head & 15)
    return fields


def written(fields: Struct) -> bytes:
    """Return a struct's bytes."""
    out, last = b"", 0
    for id_, (type_, value) in sorted(fields.items()):
        short = 0 < id_ - last < 16
        out += bytes([(id_ - last) << 4 | type_]) if short else bytes([type_]) + _number(id_)
        out += _bytes(type_, value)
        last = id_
    return out + b"\0"


def footer(parquet: bytes) -> tuple[bytes, Struct]:
    """Return the bytes before a Parquet file's footer, and the footer."""
    length = int.from_bytes(parquet[-8:-4], "little")
    return parquet[: -8 - length], read_struct(io.BytesIO(parquet[-8 - length : -8]))


def with_footer(before: bytes, metadata: Struct) -> bytes:
    """Return a Parquet file with another footer."""
    text = written(metadata)
    return before + text + len(text).to_bytes(4, "little") + b"PAR1"


def _value(file: io.BytesIO, type_: int) -> Any:
    if type_ in _BOOLEANS:
        return None
    if type_ in _WHOLE:
        return _zigzag(_varint(file))
    if type_ == _BINARY:
        return file.read(_varint(file))
    if type_ in _LISTS:
        head = file.read(1)[0]
        count = _varint(file) if head >> 4 == 15 else head >> 4
        return head & 15, [_value(file, head & 15) for _ in range(count)]
    if type_ == _STRUCT:
        return read_struct(file)
    return file.read({_BYTE: 1, _DOUBLE: 8}[type_])


def _bytes(type_: int, value: Any) -> bytes:
    if type_ in _BOOLEANS:
        return b""
    if type_ in _WHOLE:
        return _number(value)
    if type_ == _BINARY:
        return _unsigned(len(value)) + value
    if type_ in _LISTS:
        kind, items = value
        head = bytes([0xF0 | kind]) + _unsigned(len(items))
        return head + b"".join(_bytes(kind, item) for item in items)
    return written(value) if type_ == _STRUCT else bytes(value)


def _varint(file: io.BytesIO) -> int:
    value = shift = 0
    while True:
        byte = file.read(1)[0]
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value


def _unsigned(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def _number(value: int) -> bytes:
    return _unsigned(value * 2 if value >= 0 else -value * 2 - 1)
