"""The rows that break a check, as a report has them: in words, and as a table.

Each is told by its place in the landed file, the cells at fault, and the others, the key first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from lakegate.audit.diagnosis import cell_told
from lakegate.audit.report import ADDRESS, MOST_OF_KEY, PLACE, TIMES, CheckResult
from lakegate.text import one_line

_NOT_COLUMNS = (PLACE, TIMES, *ADDRESS)
_TWICE = "2"
_Row = Mapping[str, Any]


def told(check: CheckResult) -> list[str]:
    """Return a line for each sample row of a check; those of one key are told together."""
    keys = [": ".join(filter(None, each)) for each in repeated(check)]
    single = [row for row in check.samples if TIMES not in row]
    return keys + [one_line(cell_told(row) or _row_told(row, check.columns)) for row in single]


def repeated(check: CheckResult) -> list[tuple[str, str]]:
    """Return the keys that are there several times, and where: `id 7 twice`, `lines 251, 252`."""
    rows = [row for row in check.samples if TIMES in row]
    return [_repeated(each, check.columns) for each in _by_key(rows, check.columns)]


def shown(rows: Iterable[_Row]) -> list[dict[str, Any]]:
    """Return sample rows for a table: place and values, without addresses in the lake."""
    listed = list(rows)
    taken = any("place" in row and PLACE in row for row in listed)
    name = PLACE if taken else "place"
    is_placed = any(PLACE in row for row in listed)
    return [{**({name: row.get(PLACE, "")} if is_placed else {}), **_values(row)} for row in listed]


def offending(check: CheckResult) -> tuple[str, ...]:
    """Return the columns of its sample rows whose cells break it."""
    if any(cell_told(sample) for sample in check.samples):
        return ("value",)
    named = dict.fromkeys(name for row in check.samples for name in _own(row, check.columns))
    return tuple(named) or check.columns


def own_values(check: CheckResult) -> list[Mapping[str, str | None]]:
    """Return the cells at fault of each sample row, by column."""
    return [_own(row, check.columns) for row in check.samples]


def _values(row: _Row) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _NOT_COLUMNS}


def _own(row: _Row, columns: Sequence[str]) -> dict[str, Any]:
    """Return the values of a check's columns; of one within another, the outer one's."""
    values = _values(row)
    within = [each for each in columns if each not in values]  # others only look as if they were
    return {
        name: value
        for name, value in values.items()
        if name in columns
        or any(each.startswith(tuple(f"{name}{sign}" for sign in ".[{")) for each in within)
    }


def _by_key(rows: Sequence[_Row], columns: Sequence[str]) -> list[list[_Row]]:
    """Return the rows of each key, which stand side by side; of two keys values may look alike."""
    of_keys = []
    for (_, many), alike in groupby(rows, key=lambda row: (_own(row, columns), row[TIMES])):
        left, size = list(alike), min(int(many), MOST_OF_KEY)
        of_keys += [left[at : at + size] for at in range(0, len(left), size)]
    return of_keys


def _repeated(rows: Sequence[_Row], columns: Sequence[str]) -> tuple[str, str]:
    many = rows[0][TIMES]
    key = ", ".join(_cells(_own(rows[0], columns)))
    words = one_line(f"{key} twice" if many == _TWICE else f"{key}, {many} times")
    places = [str(row[PLACE]) for row in rows if row.get(PLACE)]
    if not places:
        return words, ""
    unit = places[0].partition(" ")[0]
    listed = ", ".join(place.partition(" ")[2] for place in places)
    return words, f"{unit}s {listed}" + (", …" if int(many) > len(places) else "")


def _row_told(row: _Row, columns: Sequence[str]) -> str:
    own = _own(row, columns)
    others = {name: value for name, value in _values(row).items() if name not in own}
    words = ", ".join((*_cells(own), *_cells(others)))
    return ": ".join(filter(None, (str(row.get(PLACE, "")), words)))


def _cells(values: Mapping[str, Any]) -> list[str]:
    return [f"{name} {_cell(value)}" for name, value in values.items()]


def _cell(value: Any) -> str:
    if value is None:
        return "(empty)"
    text = str(value)
    return text if text and text == text.strip() else repr(text)


@dataclass(frozen=True)
class BadRow:
    """A row that breaks a check: its place in the landed file, and values by column, as texts.

    `place` is `line 7`, `row 6` or `item 6`, "" if unknown. `columns` are those at fault. A key
    that is there several `times` has a row for each of its first places; it is 1 otherwise.
    """

    check: str
    place: str
    columns: tuple[str, ...]
    values: Mapping[str, str | None]
    times: int = 1


def bad_rows(check: CheckResult) -> list[BadRow]:
    """Return the sample rows of a check, but not the cells that could not be read."""
    return [
        BadRow(
            check.id,
            row.get(PLACE) or "",
            check.columns,
            _values(row),
            int(row.get(TIMES) or 1),
        )
        for row in check.samples
        if not cell_told(row)
    ]
