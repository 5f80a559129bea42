"""Put faults into generated rows and files."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

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


MEANING: Mapping[Fault, str] = {  # for help
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


def with_row_faults(rows: "pa.Table", faults: frozenset[Fault]) -> "pa.Table":
    """Return a file's first rows with the faults that concern single rows."""
    if Fault.NULLS in faults:
        rows = _replaced(rows, "country", None)
    if Fault.DUPLICATES in faults:
        rows = _replaced(rows, "parcel_id", rows["parcel_id"][0], BROKEN_ROWS + 1)
    if Fault.RANGE in faults:
        rows = _replaced(rows, "weight_kg", 1_000.0)
    return rows


def with_column_faults(rows: "pa.Table", faults: frozenset[Fault]) -> "pa.Table":
    """Return rows with the faults that concern whole columns."""
    if Fault.RENAMED in faults:
        rows = rows.rename_columns({"postage": "price"})
    if Fault.MISSING in faults:
        rows = rows.drop_columns("sent_at")
    if Fault.TYPE in faults:
        import pyarrow as pa  # it takes its time, which help does not need

        index = rows.schema.get_field_index("weight_kg")
        words = rows.set_column(index, "weight_kg", rows["weight_kg"].cast(pa.string()))
        rows = _replaced(words, "weight_kg", "heavy")
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


def _replaced(rows: "pa.Table", name: str, value: Any, many: int = BROKEN_ROWS) -> "pa.Table":
    """Return the rows with one value in a column of the first `many` rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    first = pa.array([index < many for index in range(rows.num_rows)])
    values = pc.if_else(first, value, rows[name])
    return rows.set_column(rows.schema.get_field_index(name), name, values)
