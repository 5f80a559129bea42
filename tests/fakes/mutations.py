"""Files of every format, and corruption done to them by a seed: the same for the same number."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

_ROWS = 120
_NEW_YEAR = datetime(2013, 1, 1, tzinfo=UTC)
_PARTS = [
    {"name": "a", "logicalType": "string"},
    {"name": "b", "logicalType": "integer"},
]
COLUMNS: list[dict[str, Any]] = [
    {"name": "id", "logicalType": "integer", "physicalType": "bigint", "required": True},
    {"name": "name", "logicalType": "string"},
    {"name": "kind", "logicalType": "string"},
    {"name": "amount", "logicalType": "number", "physicalType": "double"},
    {"name": "price", "logicalType": "number", "physicalType": "decimal(9,2)"},
    {"name": "day", "logicalType": "date"},
    {"name": "at", "logicalType": "timestamp"},
    {"name": "ok", "logicalType": "boolean"},
]
NESTED: list[dict[str, Any]] = [
    COLUMNS[0],
    {"name": "l", "logicalType": "array", "items": {"logicalType": "integer"}},
    {"name": "s", "logicalType": "object", "properties": _PARTS},
    {
        "name": "ls",
        "logicalType": "array",
        "items": {"logicalType": "object", "properties": _PARTS},
    },
]


@dataclass(frozen=True)
class Sample:
    """An intact file; `checked` if a checksum covers every byte of its rows."""

    format: str
    body: bytes
    name: str = "file"
    columns: tuple[Mapping[str, Any], ...] = tuple(COLUMNS)
    checked: bool = False

    @property
    def is_flat(self) -> bool:
        """Return whether it has the columns of `COLUMNS`."""
        return self.columns == tuple(COLUMNS)

    def contract(self, table: str) -> str:
        """Return the contract that the intact file meets."""
        schema = {
            "name": table,
            "logicalType": "object",
            "quality": [{"metric": "rowCount", "mustBeGreaterThan": 0}],
            "properties": list(self.columns),
        }
        head = {"kind": "DataContract", "apiVersion": "v3.1.0", "id": table, "status": "active"}
        settings = [{"property": "format", "value": self.format}]
        return json.dumps(
            {**head, "version": "1.0.0", "customProperties": settings, "schema": [schema]}
        )


def samples(avro: Mapping[str, bytes]) -> dict[str, Sample]:
    """Return the intact files by their names; `avro` are those that only Spark can write."""
    binary = {
        "parquet plain": _parquet(FLAT, compression="none", use_dictionary=False),
        "parquet dictionary": _parquet(FLAT, compression="none"),
        "parquet snappy": _parquet(FLAT, row_group_size=50),
        "parquet zstd v2": _parquet(FLAT, compression="zstd", data_page_version="2.0"),
        "parquet gzip": _parquet(FLAT, compression="gzip", data_page_size=200),
        "parquet lz4": _parquet(FLAT, compression="lz4"),
        "parquet delta": _parquet(
            FLAT, compression="none", use_dictionary=False, column_encoding=_DELTA
        ),
        "parquet nested": _parquet(_NESTED, compression="none"),
        "parquet nested v2": _parquet(_NESTED, data_page_version="2.0"),
    }
    found = {name: Sample("parquet", body) for name, body in binary.items()}
    for name in ("parquet nested", "parquet nested v2"):
        found[name] = Sample("parquet", binary[name], columns=tuple(NESTED))
    checksums = _parquet(FLAT, write_page_checksum=True)
    found["parquet checksums"] = Sample("parquet", checksums, checked=True)
    for codec in ("uncompressed", "zlib", "snappy", "zstd"):
        found[f"orc {codec}"] = Sample("orc", _orc(FLAT, codec))
    found["orc nested"] = Sample("orc", _orc(_NESTED, "zlib"), columns=tuple(NESTED))
    found |= {f"avro {codec}": Sample("avro", body) for codec, body in avro.items()}
    return found | _texts()


def mutated(sample: Sample, others: list[Sample], number: int) -> tuple[str, bytes]:
    """Return the mutation with this number, and the mutated file."""
    random = Random(number)  # noqa: S311 no secret
    how = random.choice(sorted(_DAMAGE))
    return how, _DAMAGE[how](random, sample.body, [other.body for other in others])


def _flip(random: Random, body: bytes, _: list[bytes]) -> bytes:
    damaged = bytearray(body)
    for _n in range(random.choice((1, 1, 1, 2, 5))):
        damaged[random.randrange(len(body))] ^= random.choice((1 << random.randrange(8), 0xFF))
    return bytes(damaged)


def _zero(random: Random, body: bytes, _: list[bytes]) -> bytes:
    length = random.choice((4, 8, 16, 64, 256))
    at = random.randrange(len(body))
    return body[:at] + bytes(len(body[at : at + length])) + body[at + length :]


def _truncate(random: Random, body: bytes, _: list[bytes]) -> bytes:
    return body[: random.randrange(1, len(body))]


def _cut_out(random: Random, body: bytes, _: list[bytes]) -> bytes:
    at, length = random.randrange(len(body)), random.choice((1, 4, 64))
    return body[:at] + body[at + length :]


def _repeat(random: Random, body: bytes, _: list[bytes]) -> bytes:
    at, length = random.randrange(len(body)), random.choice((1, 4, 64))
    return body[: at + length] + body[at:]


def _swap_footer(random: Random, body: bytes, others: list[bytes]) -> bytes:
    """Return the file with the footer, or else the last bytes, of another file of its format."""
    other = random.choice(others)
    if other[-4:] == b"PAR1":
        ends = [int.from_bytes(each[-8:-4], "little") + 8 for each in (body, other)]
    else:
        ends = [random.randrange(1, min(len(body), len(other)))] * 2
    return body[: -ends[0]] + other[-ends[1] :]


Damage = Callable[[Random, bytes, list[bytes]], bytes]
_DAMAGE: dict[str, Damage] = {
    "bytes flipped": _flip,
    "range zeroed": _zero,
    "cut short": _truncate,
    "range cut out": _cut_out,
    "range repeated": _repeat,
    "footers swapped": _swap_footer,
}


def _flat(n: int) -> dict[str, Any]:
    return {
        "id": n,
        "name": None if n % 13 == 5 else f"name {n * 7919 % 1000}",
        "kind": "abc"[n % 3],
        "amount": None if n % 7 == 3 else n / 8,
        "price": Decimal(n * 37 % 10_000) / 100,
        "day": (_NEW_YEAR + timedelta(days=n // 10)).date(),
        "at": _NEW_YEAR + timedelta(minutes=n * 11),
        "ok": n % 5 != 2,
    }


FLAT = pa.Table.from_pylist(
    [_flat(n) for n in range(_ROWS)],
    pa.schema({
        "id": pa.int64(), "name": pa.string(), "kind": pa.string(), "amount": pa.float64(),
        "price": pa.decimal128(9, 2), "day": pa.date32(), "at": pa.timestamp("us", "UTC"),
        "ok": pa.bool_(),
    }),
)  # fmt: skip
_PAIR = pa.struct({"a": pa.string(), "b": pa.int64()})
_NESTED = pa.table({
    "id": pa.array(range(_ROWS), pa.int64()),
    "l": pa.array([[*range(n % 4)] if n % 9 else None for n in range(_ROWS)], pa.list_(pa.int64())),
    "s": pa.array([{"a": f"a{n}", "b": n} if n % 8 else None for n in range(_ROWS)], _PAIR),
    "ls": pa.array(
        [[{"a": f"x{n}", "b": m} for m in range(n % 3)] for n in range(_ROWS)], pa.list_(_PAIR)
    ),
})  # fmt: skip
_DELTA = {
    "id": "DELTA_BINARY_PACKED",
    "name": "DELTA_BYTE_ARRAY",
    "kind": "DELTA_LENGTH_BYTE_ARRAY",
    "at": "DELTA_BINARY_PACKED",
}


def _parquet(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def _orc(table: pa.Table, codec: str) -> bytes:
    if "at" in table.column_names:  # of ORC's times Spark reads those without a zone
        at = table.column_names.index("at")
        table = table.set_column(at, "at", table["at"].cast(pa.timestamp("us")))
    file = io.BytesIO()
    orc.write_table(table, file, compression=codec)
    return file.getvalue()


def _texts() -> dict[str, Sample]:
    rows = [{name: _text(value) for name, value in row.items()} for row in FLAT.to_pylist()]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    comma, tab = _csv(rows, ","), _csv(rows, "\t")
    return {
        "csv": Sample("csv", comma),
        "tsv": Sample("tsv", tab),
        "json lines": Sample("json", lines),
        "json array": Sample("json", json.dumps(rows).encode()),
        "csv gzip": Sample("csv", gzip.compress(comma, mtime=0), "file.gz", checked=True),
        "json gzip": Sample("json", gzip.compress(lines, mtime=0), "file.gz", checked=True),
    }


def _text(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


def _csv(rows: list[dict[str, Any]], separator: str) -> bytes:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), delimiter=separator, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()
