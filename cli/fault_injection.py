"""Damages made-up rows and files, as those from elsewhere are."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

# What can be wrong with a made-up file, on request.

DAMAGED = 7  # so many rows are, where a fault is about single rows


class Fault(StrEnum):
    """What can be wrong with a file."""

    NULLS = "nulls"
    DUPLICATES = "duplicates"
    RANGE = "range"
    RENAMED = "renamed"
    MISSING = "missing"
    TYPE = "type"
    TRUNCATED = "truncated"
    RAGGED = "ragged"


# What each does, for people.
MEANING: Mapping[Fault, str] = {
    Fault.NULLS: f"{DAMAGED} rows have no country",
    Fault.DUPLICATES: f"{DAMAGED} rows repeat another one's parcel_id",
    Fault.RANGE: f"{DAMAGED} parcels weigh a thousand kilograms",
    Fault.RENAMED: "the column postage is called price",
    Fault.MISSING: "the column sent_at is not there",
    Fault.TYPE: "weight_kg is text, and in some rows no number",
    Fault.TRUNCATED: "the file ends in its middle",
    Fault.RAGGED: "the last line has a cell too many (csv only)",
}


_WITHIN_A_TEXT = 20  # bytes from a line's beginning: in the quoted tracking number


def damaged(rows: pa.Table, faults: frozenset[Fault]) -> pa.Table:
    """A file's first rows with those faults that lie in rows and columns."""
    for fault, damage in _INDAMAGED.items():
        if fault in faults:
            rows = damage(rows)
    return rows


def reshaped(rows: pa.Table, faults: frozenset[Fault]) -> pa.Table:
    """Any of a file's rows with those faults that all of its rows have."""
    for fault, damage in _IN_COLUMNS.items():
        if fault in faults:
            rows = damage(rows)
    return rows


def spoil(file: Path, faults: frozenset[Fault]) -> None:
    """Do to a finished file what lies in its bytes."""
    if Fault.RAGGED in faults:
        with file.open("r+b") as opened:
            opened.seek(-1, 2)
            opened.write(b",one cell too many\n")
    if Fault.TRUNCATED in faults:
        with file.open("r+b") as opened:
            opened.seek(opened.seek(0, 2) // 2)
            if file.suffix == ".csv":
                opened.readline()
                opened.seek(_WITHIN_A_TEXT, 1)  # a file that ends with a line looks whole
            opened.truncate()


def _first(rows: pa.Table, many: int = DAMAGED) -> pa.Array:
    """Which rows are among the first so many."""
    return pa.array([index < many for index in range(rows.num_rows)])


def _replaced(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, values)


def _nulls(rows: pa.Table) -> pa.Table:
    return _replaced(rows, "country", pc.if_else(_first(rows), None, rows["country"]))


def _duplicates(rows: pa.Table) -> pa.Table:
    ids = rows["parcel_id"]
    return _replaced(rows, "parcel_id", pc.if_else(_first(rows, DAMAGED + 1), ids[0], ids))


def _range(rows: pa.Table) -> pa.Table:
    return _replaced(rows, "weight_kg", pc.if_else(_first(rows), 1_000.0, rows["weight_kg"]))


def _renamed(rows: pa.Table) -> pa.Table:
    return rows.rename_columns({"postage": "price"})


def _missing(rows: pa.Table) -> pa.Table:
    return rows.drop_columns("sent_at")


def _type(rows: pa.Table) -> pa.Table:
    words = rows["weight_kg"].cast(pa.string())
    return _replaced(rows, "weight_kg", pc.if_else(_first(rows), "heavy", words))


_Damage = Callable[[pa.Table], pa.Table]
_INDAMAGED: Mapping[Fault, _Damage] = {
    Fault.NULLS: _nulls,
    Fault.DUPLICATES: _duplicates,
    Fault.RANGE: _range,
}
_IN_COLUMNS: Mapping[Fault, _Damage] = {
    Fault.RENAMED: _renamed,
    Fault.MISSING: _missing,
    Fault.TYPE: _type,
}
