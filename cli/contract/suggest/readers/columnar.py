"""Open a Parquet or ORC sample with the types that Spark reads from it.

duckdb and pyarrow read some types as others than Spark does (`ParquetToSparkSchemaConverter`):
INT96 and times of old writers are instants there.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc
import pyarrow.parquet

from access.tables.check_sql import POSITION, quoted
from cli.contract.suggest.cells import refusal
from cli.contract.suggest.columns import text
from cli.contract.suggest.readers import avro
from lakegate.contract.reading.properties import name_problem

_INSTANT = "TIMESTAMP WITH TIME ZONE"
_GREGORIAN = "1582-10-15"
_DAYS = ("DATE", "TIMESTAMP")
_UNREADABLE = ("Time", "Interval", "Float16", "UUID")
_MOST_DIGITS = 38
_MICROSECONDS = "Write them in microseconds."


@dataclass(frozen=True)
class Columns:
    """The query of a file's rows, and for some columns the condition that the job refuses one."""

    source: str
    broken: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def open_parquet(connection: duckdb.DuckDBPyConnection, file: Path) -> Columns:
    """Open a Parquet file. Raises LakegateError UNREADABLE for a type that Spark cannot read."""
    read = f"read_parquet({text(file)})"
    described = pyarrow.parquet.ParquetFile(file)
    leaves = (_leaf(described.schema.column(n)) for n in range(len(described.schema)))
    _refuse_lost_digits(described)
    given = _described(connection, read)
    types = {name: _spelled(type_, leaves) for name, type_ in given.items()}
    broken = {
        name: f"epoch_ns({quoted(name)}) % 1000 <> 0"
        for name, type_ in given.items()
        if str(type_) == "TIMESTAMP_NS" and types[name] == "TIMESTAMP_NS"
    }
    columns = _columns(read, given, types, broken)
    if _calendar_is_unknown(described.metadata):
        _refuse_old_days(connection, columns.source)
    return columns


def _leaf(column: Any) -> str:
    """Return duckdb's type that means what Spark reads from a Parquet column, "" if it is so."""
    logical = json.loads(column.logical_type.to_json())
    kind = logical["Type"]
    if column.physical_type == "INT96":
        return _INSTANT
    if kind == "Timestamp" and logical["timeUnit"] == "nanoseconds" and "." in column.path:
        raise refusal(f"has nested times in nanoseconds: {column.path}", _MICROSECONDS)
    if kind == "Decimal" and logical["precision"] > _MOST_DIGITS:
        raise refusal(
            f"has the column {column.path} of decimals of more than {_MOST_DIGITS} digits, which "
            "Spark cannot read",
            "Write them with fewer digits, or as text.",
        )
    if kind == "Timestamp":
        return _INSTANT if logical["isAdjustedToUTC"] else ""
    if kind in _UNREADABLE:
        raise refusal(
            f"has the column {column.path} of Parquet's type {kind.upper()}, which Spark cannot "
            "read",
            "Write it as another type: a time of day or a UUID as text, a span as a number.",
        )
    return ""


def _refuse_lost_digits(described: Any) -> None:
    """Refuse instants with more digits than microseconds, which duckdb cuts off."""
    for column in described.schema_arrow:
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns" and column.type.tz:
            values = described.read([column.name])[column.name].cast(pa.int64())
            if not pc.all(pc.equal(pc.multiply(pc.divide(values, 1000), 1000), values)).as_py():
                cause = f"has times in {column.name} with more digits than microseconds"
                raise refusal(cause, _MICROSECONDS)


def _calendar_is_unknown(metadata: Any) -> bool:
    """Return if days before 15 October 1582 may be Julian, as the job decides it."""
    writer = metadata.created_by or ""
    by_spark = b"org.apache.spark.version" in (metadata.metadata or {})
    return not by_spark and (not writer or writer.startswith(("parquet-mr", "impala")))


def _refuse_old_days(connection: duckdb.DuckDBPyConnection, source: str) -> None:
    for name, type_ in _described(connection, f"({source})").items():
        if str(type_).startswith(_DAYS):
            sql = f"SELECT min({quoted(name)}) < {text(_GREGORIAN)} FROM ({source})"
            if connection.sql(sql).fetchall()[0][0]:
                raise refusal(
                    f"has days before {_GREGORIAN} in {name}, and an old writer: its calendar is "
                    "unknown",
                    "Write the file again with a newer writer, or leave these days out.",
                )


def open_orc(connection: duckdb.DuckDBPyConnection, file: Path) -> Columns:
    """Open an ORC file. Raises LakegateError UNREADABLE for a type that Spark cannot read."""
    table = pyarrow.orc.read_table(file)
    for column in table.schema:
        if pa.types.is_union(column.type) or getattr(column.type, "tz", None):
            raise refusal(
                f"has the column {column.name} of a type that Spark cannot read from ORC: "
                f"{column.type}",
                "Write times as `timestamp`, and each kind of value into a column of its own.",
            )
    connection.register("orc", table)
    given = _described(connection, "orc")
    types = {name: _spelled(type_, _all_instants()) for name, type_ in given.items()}
    types |= {name: str(type_) for name, type_ in given.items() if not _has_parts(type_)}
    broken = {
        name: f"{quoted(name)} < {text(_GREGORIAN)}"
        for name, type_ in types.items()
        if type_ == "DATE"  # pyarrow reads no older times
    }
    return _columns("orc", given, types, broken)


def open_avro(connection: duckdb.DuckDBPyConnection, file: Path) -> Columns:
    """Open an Avro file. Raises LakegateError UNREADABLE for a type that Spark cannot read."""
    connection.register("avro", avro.open_avro(file))
    given = _described(connection, "avro")
    return _columns("avro", given, {name: str(type_) for name, type_ in given.items()}, {})


def _all_instants() -> Iterator[str]:
    """Yield the type of ORC's nested times, which Spark reads as instants."""
    while True:
        yield "instants"


def _described(connection: duckdb.DuckDBPyConnection, source: str) -> dict[str, Any]:
    relation = connection.sql(f"FROM {source}")
    return dict(zip(relation.columns, relation.types, strict=True))


def _columns(
    source: str, given: Mapping[str, Any], types: Mapping[str, str], broken: Mapping[str, str]
) -> Columns:
    kept = [name for name in given if not name_problem(name, top=True)]
    if not kept:
        raise refusal("has no column with a usable name", "Name its columns.")
    values = [
        quoted(n)
        if types[n] == str(given[n])
        else f"CAST({quoted(n)} AS {types[n]}) AS {quoted(n)}"
        for n in kept
    ]
    query = f"SELECT {', '.join(values)}, row_number() OVER () AS {POSITION} FROM {source}"
    left_out = (f"{name!r} cannot name a column" for name in given if name not in kept)
    return Columns(query, broken, tuple(left_out))


def _has_parts(type_: Any) -> bool:
    return type_.id in ("struct", "list", "array", "map")


def _spelled(type_: Any, leaves: Iterator[str]) -> str:
    """Return a duckdb type in SQL with the given types of its leaves, in their order."""
    if not _has_parts(type_):
        other = next(leaves)
        if other == "instants":
            return _INSTANT if str(type_).startswith("TIMESTAMP") else str(type_)
        return other or str(type_)
    parts = [_spelled(part, leaves) for name, part in type_.children if name != "size"]
    match type_.id:
        case "struct":
            names = [quoted(name) for name, _ in type_.children]
            fields = (f"{name} {part}" for name, part in zip(names, parts, strict=True))
            return f"STRUCT({', '.join(fields)})"
        case "map":
            return f"MAP({', '.join(parts)})"
        case _:
            return f"{parts[0]}[]"
