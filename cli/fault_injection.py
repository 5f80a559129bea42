"""Put faults into generated rows and files."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

# The faults that can be requested.

BROKEN_ROWS = 7  # so many rows are, where a fault is about single rows


class Fault(StrEnum):
    """A kind of fault in a file."""

    NULLS = "nulls"
    DUPLICATES = "duplicates"
    RANGE = "range"
    RENAMED = "renamed"
    MISSING = "missing"
    TYPE = "type"
    TRUNCATED = "truncated"
    RAGGED = "ragged"


# Help texts.
MEANING: Mapping[Fault, str] = {
    Fault.NULLS: f"{BROKEN_ROWS} rows have no country",
    Fault.DUPLICATES: f"{BROKEN_ROWS} rows repeat another one's parcel_id",
    Fault.RANGE: f"{BROKEN_ROWS} parcels weigh a thousand kilograms",
    Fault.RENAMED: "the column postage is called price",
    Fault.MISSING: "the column sent_at is missing",
    Fault.TYPE: "weight_kg is text, in some rows not a number",
    Fault.TRUNCATED: "the file is truncated in the middle",
    Fault.RAGGED: "the last line has an extra cell (csv only)",
}


_WITHIN_A_TEXT = 20  # bytes from a line's beginning: in the quoted tracking number


def with_row_faults(rows: pa.Table, faults: frozenset[Fault]) -> pa.Table:
    """Return a file's first rows with the faults that concern single rows."""
    for fault, function in _IN_ROWS.items():
        if fault in faults:
            rows = function(rows)
    return rows


def with_column_faults(rows: pa.Table, faults: frozenset[Fault]) -> pa.Table:
    """Return rows with the faults that concern whole columns."""
    for fault, function in _IN_COLUMNS.items():
        if fault in faults:
            rows = function(rows)
    return rows


def break_bytes(file: Path, faults: frozenset[Fault]) -> None:
    """Break the bytes of a finished file."""
    if Fault.RAGGED in faults:
        with file.open("r+b") as opened:
            opened.seek(-1, 2)
            opened.write(b",one cell too many\n")
    if Fault.TRUNCATED in faults:
        with file.open("r+b") as opened:
            opened.seek(opened.seek(0, 2) // 2)
            if file.suffix == ".csv":
                opened.readline()
                opened.seek(_WITHIN_A_TEXT, 1)  # a cut at the end of a line would not show
            opened.truncate()


def _first(rows: pa.Table, many: int = BROKEN_ROWS) -> pa.Array:
    """Return a mask of the first `many` rows."""
    return pa.array([index < many for index in range(rows.num_rows)])


def _replaced(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, values)


def _nulls(rows: pa.Table) -> pa.Table:
    return _replaced(rows, "country", pc.if_else(_first(rows), None, rows["country"]))


def _duplicates(rows: pa.Table) -> pa.Table:
    ids = rows["parcel_id"]
    return _replaced(rows, "parcel_id", pc.if_else(_first(rows, BROKEN_ROWS + 1), ids[0], ids))


def _range(rows: pa.Table) -> pa.Table:
    return _replaced(rows, "weight_kg", pc.if_else(_first(rows), 1_000.0, rows["weight_kg"]))


def _renamed(rows: pa.Table) -> pa.Table:
    return rows.rename_columns({"postage": "price"})


def _missing(rows: pa.Table) -> pa.Table:
    return rows.drop_columns("sent_at")


def _type(rows: pa.Table) -> pa.Table:
    words = rows["weight_kg"].cast(pa.string())
    return _replaced(rows, "weight_kg", pc.if_else(_first(rows), "heavy", words))


_Change = Callable[[pa.Table], pa.Table]
_IN_ROWS: Mapping[Fault, _Change] = {
    Fault.NULLS: _nulls,
    Fault.DUPLICATES: _duplicates,
    Fault.RANGE: _range,
}
_IN_COLUMNS: Mapping[Fault, _Change] = {
    Fault.RENAMED: _renamed,
    Fault.MISSING: _missing,
    Fault.TYPE: _type,
}
