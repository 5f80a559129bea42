"""Decode an Avro sample to the types that Spark reads from it.

A sample is small, so plain Python is quick enough, and needs no library (Avro 1.12, "Object
Container Files"; Spark, "Apache Avro Data Source Guide").
"""

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import cramjam
import pyarrow as pa

from cli.contract.suggest.cells import refusal

MAGIC = b"Obj\x01"
_SYNC = 16
_MOST_ROWS = 100_000
_WIDEST = 38  # digits of Spark's decimals
_INSTANT, _LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
_CODECS: Mapping[str, Callable[[bytes], Any]] = {
    "null": bytes,
    "deflate": lambda block: zlib.decompress(block, -15),
    "snappy": lambda block: cramjam.snappy.decompress_raw(block[:-4]),  # then a checksum
    "zstandard": cramjam.zstd.decompress,
    "bzip2": cramjam.bzip2.decompress,
    "xz": cramjam.xz.decompress,
}
_WIDER = {frozenset(("int", "long")): "long", frozenset(("float", "double")): "double"}

Read = Callable[[BytesIO], Any]


@dataclass(frozen=True)
class _Kind:
    """A type of values: Arrow's, and how one is read."""

    type: pa.DataType
    read: Read


def open_avro(file: Path) -> pa.Table:
    """Return a file's rows. Raises LakegateError UNREADABLE for what Spark cannot read."""
    try:
        return _decoded(BytesIO(file.read_bytes()))
    except (ValueError, IndexError, struct.error, cramjam.DecompressionError) as error:
        raise refusal("is damaged Avro", "Get the whole file again.") from error


def _decoded(data: BytesIO) -> pa.Table:
    data.seek(len(MAGIC))
    header = dict(_blocks(data, lambda d: (_text(d), _bytes(d))))
    codec = header.get("avro.codec", b"null").decode()
    if codec not in _CODECS:
        raise refusal(f"is compressed by {codec}", f"Write it with one of {', '.join(_CODECS)}.")
    data.seek(_SYNC, 1)
    kind = _Schema({}).kind(json.loads(header.get("avro.schema", b"")))
    if not pa.types.is_struct(kind.type):
        raise refusal("has values instead of records", "Write each row as a record.")
    rows = list(_rows(data, _CODECS[codec], kind.read))
    return pa.Table.from_pylist(rows, pa.schema(list(kind.type)))


def _rows(data: BytesIO, unpacked: Callable[[bytes], Any], read: Read) -> Iterator[Any]:
    many = 0
    while many < _MOST_ROWS and data.read(1):
        data.seek(-1, 1)
        count, block = _long(data), _bytes(data)
        if len(data.read(_SYNC)) < _SYNC:
            raise ValueError("the file ends within a block")
        rows = BytesIO(unpacked(block))
        yield from (read(rows) for _ in range(count))
        many += count


def _long(data: BytesIO) -> int:
    value = shift = 0
    while True:
        (byte,) = data.read(1)
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)


def _bytes(data: BytesIO) -> bytes:
    return data.read(_long(data))


def _text(data: BytesIO) -> str:
    return _bytes(data).decode()


def _blocks(data: BytesIO, read: Read) -> Iterator[Any]:
    """Yield the items of an array or a map."""
    while count := _long(data):
        if count < 0:
            _long(data)  # the block's bytes
        yield from (read(data) for _ in range(abs(count)))


def _packed(form: str) -> Read:
    size = struct.calcsize(form)
    return lambda data: struct.unpack(form, data.read(size))[0]


_PLAIN = {
    "null": _Kind(pa.string(), lambda _: None),
    "boolean": _Kind(pa.bool_(), lambda data: data.read(1) == b"\x01"),
    "int": _Kind(pa.int32(), _long),
    "long": _Kind(pa.int64(), _long),
    "float": _Kind(pa.float32(), _packed("<f")),
    "double": _Kind(pa.float64(), _packed("<d")),
    "bytes": _Kind(pa.binary(), _bytes),
    "string": _Kind(pa.string(), _text),
}
_LOGICAL = {
    ("int", "date"): _Kind(pa.date32(), _long),
    ("long", "timestamp-millis"): _Kind(_INSTANT, lambda data: _long(data) * 1000),
    ("long", "timestamp-micros"): _Kind(_INSTANT, _long),
    ("long", "local-timestamp-millis"): _Kind(_LOCAL, lambda data: _long(data) * 1000),
    ("long", "local-timestamp-micros"): _Kind(_LOCAL, _long),
}


@dataclass(frozen=True)
class _Schema:
    """The named types of a schema, as far as it was read."""

    named: dict[str, _Kind]

    def kind(self, schema: Any) -> _Kind:
        """Return the kind of values that a part of the schema describes."""
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            known = _PLAIN.get(schema) or self.named.get(schema.rpartition(".")[2])
            if not known:
                raise refusal(f"has records within themselves: {schema}", "Write them in rows.")
            return known
        made = self._made(schema)
        if "name" in schema:
            self.named[schema["name"].rpartition(".")[2]] = made
        return made

    def _made(self, schema: Mapping[str, Any]) -> _Kind:
        type_, logical = schema["type"], schema.get("logicalType")
        if logical == "decimal" and type_ in ("bytes", "fixed"):
            return _decimal(schema)
        if made := {"record": self._record, "array": self._array, "map": self._map}.get(str(type_)):
            return made(schema)
        if type_ == "enum":
            return _Kind(pa.string(), lambda data: schema["symbols"][_long(data)])
        if type_ == "fixed":
            return _Kind(pa.binary(), lambda data: data.read(schema["size"]))
        return _LOGICAL.get((str(type_), str(logical))) or self.kind(type_)

    def _array(self, schema: Mapping[str, Any]) -> _Kind:
        items = self.kind(schema["items"])
        return _Kind(pa.list_(items.type), lambda data: list(_blocks(data, items.read)))

    def _map(self, schema: Mapping[str, Any]) -> _Kind:
        values = self.kind(schema["values"])
        type_ = pa.map_(pa.string(), values.type)
        return _Kind(type_, lambda d: list(_blocks(d, lambda d: (_text(d), values.read(d)))))

    def _record(self, schema: Mapping[str, Any]) -> _Kind:
        fields = [(each["name"], self.kind(each["type"])) for each in schema["fields"]]
        made = pa.struct([(name, kind.type) for name, kind in fields])
        return _Kind(made, lambda data: {name: kind.read(data) for name, kind in fields})

    def _union(self, branches: list[Any]) -> _Kind:
        kinds = [self.kind(branch) for branch in branches]
        types = {str(kind.type): kind.type for kind in kinds if kind is not _PLAIN["null"]}
        wider = _WIDER.get(frozenset(str(b) for b in branches if b != "null"))
        if len(types) > 1 and not wider:
            raise refusal("has a union of several types", "Write one type in each column.")
        type_ = _PLAIN[wider].type if wider else next(iter(types.values()), pa.string())
        return _Kind(type_, lambda data: kinds[_long(data)].read(data))


def _decimal(schema: Mapping[str, Any]) -> _Kind:
    precision, scale = schema["precision"], schema.get("scale", 0)
    if precision > _WIDEST:
        raise refusal(f"has decimals of {precision} digits", f"Write at most {_WIDEST}.")

    def read(data: BytesIO) -> Decimal:
        digits = data.read(schema["size"]) if schema["type"] == "fixed" else _bytes(data)
        return Decimal(int.from_bytes(digits, signed=True)).scaleb(-scale)

    return _Kind(pa.decimal128(precision, scale), read)
