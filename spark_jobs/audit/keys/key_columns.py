"""The columns of a key in an Iceberg table, and their values in a data file, decoded by Arrow."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakegate.audit.report import DataFile
from spark_jobs.files.stream import Stream
from spark_jobs.lake.storage import Storage
from spark_jobs.schema.types import digits

# A column can become wider without a change of its values, so they are read as the widest type.
_WIDER = {"int": "long", "float": "double"}
_MOST_DIGITS = 38
_READ_AS = {
    "boolean": pa.bool_(),
    "long": pa.int64(),
    "double": pa.float64(),
    "date": pa.int32(),
    "timestamp": pa.int64(),
    "timestamptz": pa.int64(),
    "string": pa.binary(),  # equal by bytes, as for Spark, even where they are not UTF-8
    "binary": pa.binary(),
}
_DEFAULT = "initial-default"  # of rows in files that are older than the column
_ID = b"PARQUET:field_id"


class Unreadable(Exception):
    """Arrow cannot read the keys in a data file as Spark does; the text says why."""


@dataclass(frozen=True)
class KeyColumns:
    """A key's columns, by their field ids in ascending order.

    `types` are Iceberg's, the widest of their kind.
    """

    ids: tuple[int, ...]
    types: tuple[str, ...]

    @classmethod
    def find(cls, schema: dict[str, Any], names: Sequence[str]) -> "KeyColumns | None":
        """Return the columns with these names in a table's schema, as Iceberg writes it in JSON.

        Returns None where one is nested, missing, or of a type that Arrow does not compare.
        """
        there = {field["name"].lower(): field for field in schema["fields"]}
        if any(name.lower() not in there for name in names):
            return None
        fields = sorted((there[name.lower()] for name in names), key=itemgetter("id"))
        types = [_widest(field["type"]) for field in fields]
        if not all(types) or any(_DEFAULT in field for field in fields):
            return None
        return cls(tuple(field["id"] for field in fields), tuple(types))

    @property
    def text(self) -> str:
        """Return the columns as a text."""
        return ",".join(f"{id_}:{type_}" for id_, type_ in zip(self.ids, self.types, strict=True))

    def read(self, lake: Storage, file: DataFile) -> Iterator[list[pa.ChunkedArray]]:
        """Yield the columns in a Parquet file, one row group at a time.

        Of a file that is older than one of them nothing, as no row of it has a key. Raises
        Unreadable.
        """
        try:
            stream = Stream(file.bytes, partial(lake.part, file.path))
            opened = pq.ParquetFile(pa.PythonFile(stream, "r"), page_checksum_verification=True)
            names = self._names(opened.schema_arrow)
            groups = range(opened.metadata.num_row_groups) if len(names) == len(self.ids) else ()
            for group in groups:
                table = opened.read_row_group(group, columns=names, use_threads=False)
                yield [self._plain(table, *each) for each in zip(names, self.types, strict=True)]
        except (pa.ArrowException, OSError) as error:
            raise Unreadable(f"{file.path}: {type(error).__name__}") from error

    def _names(self, schema: pa.Schema) -> list[str]:
        """Return the columns' names in a file's schema, without those that it lacks."""
        by_id = {int((field.metadata or {}).get(_ID, -1)): field.name for field in schema}
        if -1 in by_id:
            raise Unreadable("a column has no field id")
        return [by_id[id_] for id_ in self.ids if id_ in by_id]

    def _plain(self, table: pa.Table, name: str, type_: str) -> pa.ChunkedArray:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz))
        return column.cast(_read_as(type_))


def _widest(type_: Any) -> str:
    """Return the widest type of the same kind; "" for types that are not compared by Arrow."""
    if not isinstance(type_, str):
        return ""
    if type_.startswith("decimal("):
        return f"decimal({_MOST_DIGITS},{digits(type_)[1]})"
    widest = _WIDER.get(type_, type_)
    return widest if widest in _READ_AS else ""


def _read_as(type_: str) -> pa.DataType:
    if type_.startswith("decimal("):
        return pa.decimal128(_MOST_DIGITS, digits(type_)[1])
    return _READ_AS[type_]
