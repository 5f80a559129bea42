"""Small made-up files, each with a property that real files have and drafts stumble over."""

import gzip
import io
import json
import math
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import cramjam
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet

NOON = datetime(2013, 5, 1, 12, tzinfo=UTC).replace(tzinfo=None)


def lines(*rows: Any) -> bytes:
    """Return JSON with one value a line."""
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def parquet(columns: Mapping[str, Any], **options: Any) -> bytes:
    """Return a Parquet file of Arrow arrays."""
    return _written(lambda sink: pyarrow.parquet.write_table(pa.table(columns), sink, **options))


def orc(columns: Mapping[str, Any]) -> bytes:
    """Return an ORC file of Arrow arrays."""
    return _written(lambda sink: pyarrow.orc.write_table(pa.table(columns), sink))


def avro(fields: Mapping[str, Any], *rows: tuple[Any, ...], codec: str = "null") -> bytes:
    """Return an Avro file with the rows in one block, by the schema's own coding."""
    described = [{"name": name, "type": type_} for name, type_ in fields.items()]
    schema = {"type": "record", "name": "row", "fields": described}
    block = b"".join(_encoded(schema, dict(zip(fields, row, strict=True))) for row in rows)
    if codec == "deflate":
        block = zlib.compress(block, wbits=-15)
    if codec == "snappy":
        block = bytes(cramjam.snappy.compress_raw(block)) + zlib.crc32(block).to_bytes(4)
    header = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    noted = _encoded({"type": "map", "values": "bytes"}, header)
    end = b"0123456789abcdef"
    return b"Obj\x01" + noted + end + _long(len(rows)) + _encoded("bytes", block) + end


def _long(value: int) -> bytes:
    rest, coded = (value << 1) ^ (value >> 63), b""
    while rest > 0x7F:
        rest, coded = rest >> 7, coded + bytes([rest & 0x7F | 0x80])
    return coded + bytes([rest])


def _encoded(type_: Any, value: Any) -> bytes:
    if isinstance(type_, list):  # null first
        return _long(0) if value is None else _long(1) + _encoded(type_[1], value)
    if type_ == "ns.size":
        return _encoded(_AVRO["size"], value)
    kind = type_["type"] if isinstance(type_, dict) else type_
    coders: dict[str, Callable[[], bytes]] = {
        "record": lambda: b"".join(_encoded(f["type"], value[f["name"]]) for f in type_["fields"]),
        "array": lambda: _block(_encoded(type_["items"], each) for each in value),
        "map": lambda: _block(
            _encoded("string", key) + _encoded(type_["values"], value[key]) for key in value
        ),
        "enum": lambda: _long(type_["symbols"].index(value)),
        "fixed": lambda: bytes(value),
        "boolean": lambda: bytes([value]),
        "float": lambda: struct.pack("<f", value),
        "double": lambda: struct.pack("<d", value),
        "bytes": lambda: _long(len(value)) + value,
        "string": lambda: _long(len(value.encode())) + value.encode(),
    }
    return coders.get(kind, lambda: _long(value))()


def _block(items: Iterable[bytes]) -> bytes:
    coded = list(items)
    return (_long(len(coded)) + b"".join(coded) if coded else b"") + _long(0)


_LOGICAL = {
    "day": ("int", "date"),
    "at": ("long", "timestamp-millis"),
    "micro": ("long", "timestamp-micros"),
    "wall": ("long", "local-timestamp-millis"),
    "id": ("string", "uuid"),
    "clock": ("int", "time-millis"),
}
_AVRO: dict[str, Any] = {
    **{
        name: {"type": type_, "logicalType": logical} for name, (type_, logical) in _LOGICAL.items()
    },
    "price": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
    "size": {"type": "enum", "name": "ns.size", "symbols": ["S", "L"]},
    "other": "ns.size",
    "tags": {"type": "array", "items": "string"},
    "more": {"type": "map", "values": ["null", "long"]},
    "part": {"type": "record", "name": "p", "fields": [{"name": "x", "type": ["null", "float"]}]},
    "sum": {"type": "fixed", "name": "f", "size": 2},
    "nothing": ["null", "string"],
}
_AVRO_ROW: tuple[Any, ...] = (
    *(15826, 1367409600000, 1367409600000000, 1367409600000, "a" * 36, 60000),
    *(b"\xff\x6a", "L", "S", ["x", "é"], {"a": None, "b": 2**40}, {"x": 1.5}, b"ab", None),
)
_EMPTY_ROW: tuple[Any, ...] = (*_AVRO_ROW[:9], [], {}, *_AVRO_ROW[11:])
_AVRO_TYPES = (
    "date timestamp timestamp timestamp_ntz string int decimal(6,2) string string array<string>"
    " map<string,bigint> struct<`x`:float> binary string"
)
_PAIR = {"a": "long", "b": ["null", "boolean"]}


def _written(write: Callable[[io.BytesIO], object]) -> bytes:
    sink = io.BytesIO()
    write(sink)
    return sink.getvalue()


def _feather() -> bytes:
    return _written(lambda sink: pyarrow.feather.write_feather(pa.table({"a": [1]}), sink))


def _zip() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("a.csv", "a,b\n1,2\n")
    return sink.getvalue()


def _rows(cell: Callable[[int], str], count: int = 300) -> bytes:
    return ("id,c\n" + "".join(f"{n},{cell(n)}\n" for n in range(count))).encode()


_FEATURES = [
    {"type": "Feature", "properties": {"name": "x"}, "geometry": {"type": "Point"}},
    {"type": "Feature", "properties": {"name": "y"}, "geometry": {"type": "Point"}},
]

# Columns by the type that each is drafted as.
_PARQUET = {
    "int": pa.array([1], pa.int32()),
    "bigint": pa.array([1], pa.int64()),
    "decimal(20,0)": pa.array([1], pa.uint64()),
    "float": pa.array([math.nan], pa.float32()),
    "decimal(9,2)": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
    "timestamp": pa.array([NOON], pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.array([NOON], pa.timestamp("us")),
    "date": pa.array([date(1, 1, 1)]),
    "binary": pa.array([b"\x00"]),
    "string": pa.array(["2013-01-01"]),
    "map<string,int>": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
    "array<float>": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)),
}

# Name, bytes, and the types of the drafted columns.
READABLE: list[tuple[str, bytes, str]] = [
    # CSV files, their delimiters, quotes and line ends
    ("plain.csv", b"id,name\n1,a\n2,b\n", "bigint string"),
    ("semicolon.csv", b"id;price\n1;1,5\n2;2,5\n", "bigint decimal(12,2)"),
    ("cp1252.csv", "id,price\n1,5 €\n2,6 €\n".encode("cp1252"), "bigint string"),
    ("tabs.tsv", b"id\tname\n1\ta,b\n2\tc,d\n", "bigint string"),
    ("pipes.txt", b"id|name\n1|a\n2|b\n", "bigint string"),
    ("one_column.csv", b"name\nAda\nBob\n", "string"),
    ("crlf.csv", b"id,name\r\n1,a\r\n2,b\r\n", "bigint string"),
    ("crlf_then_lf.csv", b"id,name\r\n1,a\r\n2,b\n", "bigint string"),
    ("cr.csv", b"id,name\r1,a\r2,b\r", "bigint string"),
    ("no_last_end.csv", b"id,name\n1,a\n2,b", "bigint string"),
    ("empty_lines.csv", b"id,name\n\n1,a\n\n\n2,b\n", "bigint string"),
    ("quoted.csv", b'"id","name"\n"1","a,b"\n"2","c ""d"" e"\n', "bigint string"),
    ("single_quotes.csv", b"'id','name'\n'1','a,b'\n'2','c'\n", "bigint string"),
    ("backslashes.csv", b'id,name\n1,"a \\"b\\" c, d"\n2,e\n', "bigint string"),
    ("inches.tsv", b'id\tname\n1\t5" pipe\n2\t7" pipe\n', "bigint string"),
    ("open_quotes.tsv", b'id\tname\n1\t"Weird Al" Yankovic\n2\tx\n', "bigint string"),
    ("line_ends_in_cells.csv", b'id,note\n1,"a\nb"\n2,c\n', "bigint string"),
    ("quoted_empty.csv", b'id,name,n\n1,"",2\n2,b,""\n', "bigint string bigint"),
    # CSV files, their headers
    ("blank_name.csv", b",name\n0,a\n1,b\n", "string"),
    ("padded_names.csv", b"id, name ,n \n1,a,3\n2,b,4\n", "bigint string bigint"),
    ("no_header.csv", b"1,a,2013-01-01\n2,b,2013-01-02\n3,c,2013-01-03\n", "bigint string date"),
    ("years_as_names.csv", b"country,2019,2020\nDE,1,2\nFR,3,4\n", "string bigint bigint"),
    ("odd_names.csv", b'"a ""b""",c\'d,e: f,#g,yes\n1,2,3,4,5\n', " ".join(["bigint"] * 5)),
    ("trailing_delimiter.csv", b"id,name,\n1,a,\n2,b,\n", "bigint string"),
    ("reserved_name.csv", b"_file,name\nx,a\ny,b\n", "string"),
    # CSV files, their encodings
    ("latin1.csv", "id,name\n1,Zoë\n2,Jürgen\n".encode("latin-1"), "bigint string"),
    ("utf8_bom.csv", "id,name\n1,Zoë\n".encode("utf-8-sig"), "bigint string"),
    ("utf16.csv", "id,name\n1,Zoë\n2,x\n".encode("utf-16"), "bigint string"),
    ("gzip.csv.gz", gzip.compress(b"id,name\n1,a\n2,b\n"), "bigint string"),
    # CSV files, their nulls
    ("null_word.csv", b"id,n,s\n1,NULL,a\n2,5,NULL\n3,,b\n", "bigint bigint string"),
    ("na.csv", b"id,n\n1,NA\n2,5\n3,\n", "bigint bigint"),
    ("namibia.csv", b"id,country,n\n1,NA,1\n2,DE,\n3,FR,2\n", "bigint string bigint"),
    ("backslash_n.csv", b"id,n\n1,\\N\n2,5\n", "bigint bigint"),
    ("quoted_empty_and_word.csv", b'id,n,s\n1,NULL,""\n2,5,a\n', "bigint bigint string"),
    ("all_null.csv", b"id,n\n1,\n2,\n", "bigint string"),
    # CSV files, their cells
    ("far_zone.csv", b"id,t\n1,2013-01-01T00:00:00+19:00\n", "bigint string"),
    ("dirty_numbers.csv", _rows(lambda n: "n/a" if n == 42 else f"{n}.5"), "bigint double"),
    ("dirty_dates.csv", _rows(lambda n: "soon" if n == 7 else "2013-01-31"), "bigint date"),
    ("ragged.csv", _rows(lambda n: "a,b" if n == 42 else "a"), "bigint string"),
    ("percent.csv", b"id,tax_rate,fee\n1,0.19,2.50\n2,0.07,3\n", "bigint double decimal(12,2)"),
    ("mails.csv", b"id,contact\n1,ada@example.org\n2,b@example.com\n", "bigint string"),
    ("odd_mails.csv", "id,contact\n1,zoë@example.org\n2,b@example.com\n".encode(), "bigint string"),
    ("addresses.csv", b"id,host,site\n1,10.0.0.1,https://a.b/c\n", "bigint string string"),
    # JSON
    ("lines.json", lines({"a": 1, "b": "x"}, {"a": 2}), "bigint string"),
    ("array.json", json.dumps([{"a": 1}, {"a": 2}]).encode(), "bigint"),
    ("pretty_array.json", json.dumps([{"a": 1}, {"a": 2}], indent=2).encode(), "bigint"),
    ("one_row.json", b'{"a": 1}', "bigint"),
    ("crlf.json", b'{"a": 1}\r\n\r\n{"a": 2}\r\n', "bigint"),
    ("bom.json", b'\xef\xbb\xbf{"a": 1}\n{"a": 2}\n', "bigint"),
    ("gzip.json.gz", gzip.compress(b'{"a": 1}\n'), "bigint"),
    ("long_decimals.json", b'{"a": 0.12345678901234567890123}\n{"a": 1}\n', "double"),
    ("long_integers.json", b'{"a": 12345678901234567890}\n{"a": 1}\n', "decimal(38,0)"),
    ("int64.json", b'{"a": 9223372036854775807}\n{"a": 1}\n', "decimal(38,0)"),
    ("exponents.json", b'{"price": 1.5e3}\n{"price": 2}\n', "double"),
    ("exponents_of_three_digits.json", b'{"p": 1e300}\n{"p": 2.5e-310}\n', "double"),
    ("too_large.json", b'{"p": 1e400, "id": 1}\n{"p": 2, "id": 2}\n', "bigint"),
    ("too_large_within.json", b'{"p": {"q": [1e308]}, "id": 1}\n', "bigint"),
    ("reserved_names.csv", b"_pos,a,_FILE\n1,2,3\n4,5,6\n", "bigint"),
    ("money.json", b'{"price": 1.55}\n{"price": 2}\n', "decimal(12,2)"),
    ("mixed_kinds.json", lines({"a": 1, "b": 1}, {"a": "x", "b": 2}), "bigint"),
    ("dirty.json", lines(*({"a": n or "none"} for n in range(200))), "bigint"),
    ("half.json", lines(*({"a": chr(0xD83D) if n else "x"} for n in (1, *[0] * 200))), "string"),
    ("nulls.json", lines({"a": None, "b": 1}, {"a": None, "b": None}), "string bigint"),
    ("blank_key.json", lines({"": 1, "a": 2}), "bigint"),
    ("empty_object.json", lines({"a": {}, "b": 1}), "bigint"),
    ("empty_list.json", lines({"a": [], "b": 1}), "array<string> bigint"),
    (
        "nested.json",
        lines({"a": {"b": [1, 2], "d": "2013-01-01"}}, {"a": {"b": [2**64], "d": None}}),
        "struct<`b`:array<decimal(38,0)>,`d`:date>",
    ),
    ("nested_days.json", lines({"a": {"d": "2013-02-30"}}), "struct<`d`:string>"),
    ("mixed_nested.json", lines({"a": [1], "b": 1}, {"a": [[1]], "b": 1}), "bigint"),
    ("features.json", lines(*_FEATURES), "string struct<`name`:string> struct<`type`:string>"),
    (
        "texts.json",
        lines({"a": 1, "b": "2013-05-01", "c": "5", "d": True, "total": 1.5}, {"a": 2}),
        "bigint date string boolean decimal(12,2)",
    ),
    ("objects.json", lines({"id": 1, "lines": [{"n": 2}]}), "bigint array<struct<`n`:bigint>>"),
    ("dates.json", lines({"d": "2013-01-01", "t": "2013-01-01T00:00:00Z"}), "date timestamp"),
    # Parquet
    ("types.parquet", parquet(_PARQUET), " ".join(_PARQUET)),
    ("int96.parquet", parquet({"t": [NOON]}, use_deprecated_int96_timestamps=True), "timestamp"),
    (
        "int96_nested.parquet",
        parquet({"s": [{"t": [NOON]}]}, use_deprecated_int96_timestamps=True),
        "struct<`t`:array<timestamp>>",
    ),
    ("local.parquet", parquet({"t": pa.array([NOON], pa.timestamp("ms"))}), "timestamp_ntz"),
    ("utc.parquet", parquet({"t": pa.array([NOON], pa.timestamp("us", "UTC"))}), "timestamp"),
    ("ns_utc.parquet", parquet({"t": pa.array([NOON], pa.timestamp("ns", "UTC"))}), "timestamp"),
    ("no_type.parquet", parquet({"n": pa.array([None]), "b": [1]}), "string bigint"),
    ("nanoseconds.parquet", parquet({"t": pa.array([NOON], pa.timestamp("ns"))}), "timestamp_ntz"),
    ("lists.parquet", parquet({"a": [[1, 2], []], "m": [None, {"x": 1}]}), ""),
    ("spaces.parquet", parquet({" a ": [1], "b": [2.5]}), "bigint double"),
    ("decimals.parquet", parquet({"d": [Decimal("1.50")]}), "decimal(3,2)"),
    ("bytes.parquet", parquet({"b": [b"\x00"]}), "binary"),
    ("dictionary.parquet", parquet({"c": pa.array(["a", "a"]).dictionary_encode()}), "string"),
    ("all_null.parquet", parquet({"a": pa.array([None, None], pa.string()), "b": [1, 2]}), ""),
    ("nan.parquet", parquet({"a": [float("nan"), 1.5], "b": [1, 2]}), "double bigint"),
    # Avro
    ("types.avro", avro(_AVRO, _AVRO_ROW, _EMPTY_ROW), _AVRO_TYPES),
    ("deflate.avro", avro(_PAIR, (1, True), (-2, None), codec="deflate"), "bigint boolean"),
    ("snappy.avro", avro(_PAIR, (1, True), (-2, None), codec="snappy"), "bigint boolean"),
    # ORC
    ("plain.orc", orc({"a": [1, 2], "s": ["x", None]}), "bigint string"),
    ("times.orc", orc({"t": pa.array([NOON]), "d": [date(2013, 5, 1)]}), "timestamp_ntz date"),
    ("nested_times.orc", orc({"s": [{"t": NOON}]}), "struct<`t`:timestamp>"),
]

# Name, bytes, and words of the cause.
UNREADABLE: list[tuple[str, bytes, str]] = [
    (
        "wide.csv",
        (",".join(f"c{n}" for n in range(2001)) + "\n" + "1," * 2000 + "1\n").encode(),
        "2,001 columns",
    ),
    ("wide.parquet", parquet({f"c{n}": [1] for n in range(2001)}), "2,001 columns"),
    ("excel_line.csv", b"sep=;\nid;name\n1;a\n2;b\n", "a line for Excel (sep=)"),
    ("empty.csv", b"", "is empty"),
    ("header_only.csv", b"a,b\n", "has no rows"),
    ("no_rows.orc", orc({"a": pa.array([], pa.int64())}), "has no rows"),
    ("zip.csv", _zip(), "ZIP archive"),
    ("arrow.feather", _feather(), "an Arrow file"),
    ("encrypted.parquet", b"PARE" + b"\x00" * 40 + b"PARE", "encrypted Parquet"),
    ("cut.parquet", parquet({"a": [1]})[:-20], "truncated"),
    ("broken.parquet", b"PAR1\x00\x00\x00\x00PAR1", "cannot be read"),
    ("damaged.avro", b"Obj\x01\x00", "damaged Avro"),
    ("cut.avro", avro(_PAIR, (1, True), (2, None))[:-9], "damaged Avro"),
    ("no_records.avro", avro(_PAIR, (1, None)).replace(b'"record"', b'"string"'), "instead of"),
    ("codec.avro", avro(_PAIR, (1, None)).replace(b"\x08null", b"\x08lzma"), "lzma"),
    ("unions.avro", avro({"a": ["null", "string", "long"]}, ("x",)), "union of several types"),
    ("page.csv", b"<!DOCTYPE html><html></html>", "HTML or XML"),
    ("bzip.csv.bz2", b"BZh91AY&SY" + b"\x00" * 20, "bzip2"),
    (
        "wide_decimals.parquet",
        parquet({"d": pa.array([Decimal(1)], pa.decimal256(39, 2))}),
        "more than 38 digits",
    ),
    ("times.parquet", parquet({"t": [time(1, 2)]}), "TIME"),
    ("uuid.parquet", parquet({"u": pa.array([b"x" * 16], pa.uuid())}), "UUID"),
    (
        "digits.parquet",
        parquet({"t": pa.array([1], pa.timestamp("ns", "UTC"))}),
        "more digits than microseconds",
    ),
    (
        "nested_digits.parquet",
        parquet({"s": pa.array([{"t": 1}], pa.struct([("t", pa.timestamp("ns"))]))}),
        "nested times in nanoseconds",
    ),
    ("twice.csv", b"a,A\n1,2\n", "more than one column named 'a'"),
    ("title.csv", b"Report of May\nid,name,n\n1,a,2\n2,b,3\n3,c,4\n", "1 cells in its first row"),
    ("shifted.csv", b"id,name\n1,a,\n2,b,\n3,c,\n", "2 cells in its first row, but 3"),
    ("mixed_ends.csv", b'id,s\r\n1,"a\nb"\r\n2,c\n3,d\r\n', "rows that end differently"),
    ("pretty.json", json.dumps({"a": 1, "b": [1]}, indent=2).encode(), "over several lines"),
    (
        "map.geojson",
        json.dumps({"type": "FeatureCollection", "features": _FEATURES}).encode(),
        "GeoJSON",
    ),
    (
        "pretty_map.json",
        json.dumps({"type": "FeatureCollection", "features": _FEATURES}, indent=1).encode(),
        "GeoJSON",
    ),
    ("wrapped.json", json.dumps({"data": [{"a": 1}]}, indent=1).encode(), "under 'data'"),
    ("numbers.json", b"[1, 2, 3]", "an item that is no object"),
    ("cut_array.json", b'[{"a": 1}, {"a"', "begins as a JSON array"),
    ("number.json", b"3\n", "a line that is no object"),
    ("half.json", b'{"a": "\\ud800", "b": 1}\n', "no valid one"),
    ("half_array.json", b'[{"a": {"\\uDC00": 1}, "b": 1}]', "no valid one"),
    ("nan.json", b'{"a": NaN}\n{"a": 1}\n', "a line that is no object"),
    ("utf16.json", '{"a": 1}'.encode("utf-16"), "JSON in UTF-16"),
    ("contract.yaml", b"kind: DataContract\n", "is YAML"),
    ("case.json", lines({"a": 1, "A": 2}), "by case only"),
    ("zoned.orc", orc({"t": pa.array([NOON.replace(tzinfo=UTC)], pa.timestamp("us", "UTC"))}), "t"),
]
