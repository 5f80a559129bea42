"""Name a few of the cells that could not be read: place in the file, column, value and reason."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Row
from pyspark.sql import functions as F

from lakegate.audit.diagnosis import HIDDEN, BadCell
from lakegate.contract.columns import Column, quoted
from lakegate.contract.model import Contract
from lakegate.contract.reading.settings import FLAT_FORMATS, SCHEMA_FORMATS, has_decimal_comma
from lakegate.contract.written import formats_of, needs_decimal_comma
from spark_jobs.audit.places import told
from spark_jobs.files.source import BAD_ROW, PLACE, Placed, Source
from spark_jobs.files.text.text_lines import collected

MOST_NAMED = 10  # in a file
_WIDEST = 200

_REASONS = {
    "int": "not a whole number of at most 32 bits",
    "bigint": "not a whole number of at most 64 bits",
    "float": "not a number",
    "double": "not a number",
    "boolean": "not a truth value: expected true or false",
    "date": "not a date: expected ISO 8601, as in 2026-11-23",
    "timestamp": "not a time: expected ISO 8601, as in 2026-11-23T10:15:00Z",
    "timestamp_ntz": "not a time without a zone: expected ISO 8601, as in 2026-11-23T10:15:00",
    "binary": "not base64",
    "string": "not a text",
}
# Of formats that contain types; a nested value may be any of these.
_STORED = {
    "string": "not text in UTF-8",
    "date": "not of the years 1 to 9999",
    **dict.fromkeys(
        ("timestamp", "timestamp_ntz"),
        "not of the years 1 to 9999, or has digits beyond microseconds",
    ),
    **dict.fromkeys(("struct", "array", "map"), "has a value that cannot be read"),
}
_IN_ORC = dict.fromkeys(
    ("date", "timestamp", "timestamp_ntz"), "not from 15 October 1582 to the year 9999"
)
_BARE = ("int", "bigint", "float", "double", "boolean", "decimal")  # in JSON no texts


@dataclass(frozen=True)
class Secrecy:
    """The values of a file that must be hidden: all of them, or those of some columns.

    `order` are the names of the file's columns where a delimiter too many or too few in a row moves
    values to the column beside theirs. All names are in lower case.
    """

    everything: bool
    columns: frozenset[str]
    order: tuple[str, ...] = ()

    @classmethod
    def of(cls, contract: Contract, names: Sequence[str]) -> "Secrecy":
        """Return the secrecy of a file whose header has these names, in order.

        Columns that are in the file alone are not classified, and neither are those that a
        transform reads.
        """
        order = tuple(name.lower() for name in names)
        declared = {column.name.lower() for column in contract.columns}
        concealed = frozenset(map(str.lower, contract.concealed)) | (frozenset(order) - declared)
        hides = bool(contract.transform) or not contract.allow_samples
        return cls(hides, concealed, order)

    def hides(self, column: str) -> bool:
        """Return if the values of a column must be hidden."""
        name = column.lower()
        at = [n for n, each in enumerate(self.order) if each == name]
        near = {each for n in at for each in self.order[max(n - 1, 0) : n + 2]}
        return self.everything or bool({name, *near} & self.columns)

    def hides_rows(self, contract: Contract) -> bool:
        """Return if whole rows must be hidden, as any of their values may be of a hidden column."""
        return self.everything or bool(self.columns) or contract.extra_columns == "drop"


def bad_cells(read: Source, contract: Contract) -> tuple[BadCell, ...]:
    """Return the first cells that could not be read; a few of them, whatever the file's size."""
    if read.placed and read.placed.names_cells:
        return _cells_in_rows(read.placed, contract)
    return tuple(_cells_in_bad_rows(read, contract))


def _cells_in_rows(file: Placed, contract: Contract) -> tuple[BadCell, ...]:
    secrecy = Secrecy.of(contract, file.names)
    rows = collected(file.read()[1].limit(MOST_NAMED))
    places = told([row[PLACE] for row in rows], file)
    cells = (
        cell
        for row, place in zip(rows, places, strict=True)
        for cell in cells_of(row, place, contract, secrecy)
    )
    return tuple(cell for cell, _ in zip(cells, range(MOST_NAMED), strict=False))


def cells_of(row: Row, place: str, contract: Contract, secrecy: Secrecy) -> Iterator[BadCell]:
    """Yield the cells at fault in one of a file's unparseable rows (`Placed`)."""
    columns = {column.name: column for column in contract.columns}
    for cell in row["cells"] or ():
        name = cell["column"]
        column = columns.get(name) or Column(name, "string", "")
        number = _landed_number(row["row"], name) if contract.format == "json" else ""
        why = reason(column, contract) + _remedy(cell["text"] or "", column, contract)
        value = HIDDEN if secrecy.hides(name) else _cut(number or cell["text"])
        yield BadCell(place, name, value, why)
    if not row["cells"]:
        shown = HIDDEN if secrecy.hides_rows(contract) else _cut(row["row"])
        yield BadCell(place, "", shown, _whole_row_reason(row["row"], contract, len(secrecy.order)))


def _landed_number(row: str, name: str) -> str:
    """Return a number as it stands in a JSON row, "" for another value: Spark has 100 for 100.0."""
    try:
        keys = json.loads(row, parse_int=_Number, parse_float=_Number)
    except (ValueError, RecursionError):
        return ""
    landed = next((each for key, each in keys.items() if key.lower() == name.lower()), "")
    return str(landed) if isinstance(landed, _Number) else ""


class _Number(str):
    __slots__ = ()


def reason(column: Column, contract: Contract) -> str:
    """Return why a cell of a column could not be read."""
    kind = column.kind
    if contract.format in SCHEMA_FORMATS:
        known = {**_STORED, **_IN_ORC} if contract.format == "orc" else _STORED
        return known.get(kind, f"has digits that {kind} cannot hold")
    if column.written:
        skipped = f", and on the clocks of {column.zone}" if column.zone else ""
        return f"not as the contract's format {column.written}{skipped}"
    bare = ", without quotes" if contract.format == "json" and kind in _BARE else ""
    if column.is_fractional and has_decimal_comma(contract.options):
        return f"not a number with a decimal comma that fits {column.type}"
    if kind == "decimal":
        return f"not a number that fits {column.type}{bare}"
    zone = f", on the clocks of {column.zone}" if column.zone else ""
    return f"{_REASONS.get(kind, f'not of the type {column.type[:_WIDEST]}')}{zone}{bare}"


def _remedy(text: str, column: Column, contract: Contract) -> str:
    """Return the line of the contract by which a cell could be read, "" if none is known."""
    if contract.format not in FLAT_FORMATS or column.written:
        return ""
    if column.is_fractional and needs_decimal_comma(text):
        return '; set options: {decimalSeparator: ","}'
    if column.kind in ("date", "timestamp", "timestamp_ntz"):
        formats = [f'"{each}"' for each in formats_of(text, with_time=column.kind != "date")]
        return f"; set logicalTypeOptions: {{format: {' or '.join(formats)}}}" if formats else ""
    return ""


def _whole_row_reason(row: str, contract: Contract, width: int) -> str:
    if "\ufffd" in row:
        return f"not text in {contract.options.get('encoding', 'UTF-8')}"
    if contract.format not in FLAT_FORMATS:
        return "not exactly one JSON object, with each key once"
    many = _cells(row, contract.options)
    if many == width:
        return "a quote within a cell that does not begin with one"
    if not many:
        return "another number of cells than the header, or a quote that is not closed"
    return f"{many:,} cell{'s' if many > 1 else ''}, but the header has {width:,}"


def _cells(row: str, options: Mapping[str, str]) -> int:
    """Return the number of cells of a CSV row, 0 if it is not known."""
    delimiter, quote = options["delimiter"], options["quote"]
    try:
        return len(next(csv.reader([row], delimiter=delimiter, quotechar=quote, strict=True), ()))
    except csv.Error:
        return 0


def _cut(text: str | None) -> str:
    text = text or ""
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}…"


def _cells_in_bad_rows(source: Source, contract: Contract) -> Iterator[BadCell]:
    """Yield the cells of a file whose format has one text for each bad row: `column: value`.

    Under a transform a row's place in the file is not known.
    """
    # All columns, because Spark refuses to read only the corrupt records; as texts, because Python
    # has no dates after the year 9999.
    placed = source.placed or Placed.by_rows(source.rows)
    texts = [F.col(quoted(name)).cast("string").alias(name) for name in source.rows.columns]
    rows = collected(
        placed.read()[0].where(F.col(BAD_ROW).isNotNull()).limit(MOST_NAMED).select(*texts, PLACE)
    )
    places = [""] * len(rows)
    if source.placed:
        places = told([row[PLACE] for row in rows], placed)
    secrecy = Secrecy.of(contract, ())
    for row, place in zip(rows, places, strict=True):
        cell = _cell_in_text(str(row[BAD_ROW]), place, contract, secrecy)
        if place or cell.column or cell.value != HIDDEN:
            yield cell


def _cell_in_text(text: str, place: str, contract: Contract, secrecy: Secrecy) -> BadCell:
    named: list[Any] = [
        column for column in contract.columns if text.lower().startswith(f"{column.name.lower()}: ")
    ]
    if contract.transform or not named:
        shown = HIDDEN if secrecy.hides_rows(contract) else _cut(text)
        return BadCell(place, "", shown, "cannot be read")
    column = max(named, key=lambda each: len(each.name))
    value = text[len(column.name) + 2 :]
    shown = HIDDEN if secrecy.hides(column.name) else _cut(value)
    return BadCell(place, column.name, shown, reason(column, contract))
