"""Make columns of JSON objects: of plain values as texts, of objects and lists as types."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from cli.contract.suggest.cells import Cells, refusal, table_of
from cli.contract.suggest.columns import JSON_SHAPES, MOMENTS, SHAPES, ColumnProfile, Outlier
from lakegate.contract.reading.properties import name_problem

_LONGEST = 20  # characters of a number that are shown
_ONE_IN = 100  # so many cells, one may be of another kind
_INT64 = 2**63
_NUMBER = re.compile(SHAPES["any number"])
_MOMENTS = {shape: re.compile(SHAPES[shape]) for shape in MOMENTS}
_PARTS = {
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "number": "DOUBLE",
    "time": "VARCHAR",
    "": '"NULL"',
}
_PARTS |= {"date": "DATE", "timestamp": "TIMESTAMP", "instant": "TIMESTAMP WITH TIME ZONE"}
_NESTED = ("object", "list")


class Number(str):
    """A number with a point or an exponent, as it is written."""

    __slots__ = ()


@dataclass(frozen=True)
class Row:
    """A line, or an item of an array: its number, its value, and its text if it is no object."""

    line: int
    value: Mapping[str, Any]
    broken: str = ""


class _Unfit(ValueError):
    """A column that no type fits; the text says why."""


def cells(rows: Sequence[Row], bad: tuple[Outlier, ...], unit: str) -> Cells:
    """Return the columns of rows; `bad` are lines that are none, `unit` says what a row is."""
    names = tuple(dict.fromkeys(key for row in rows for key in row.value))
    _refuse_twice(names)
    plain: dict[str, _Plain] = {}
    nested: list[ColumnProfile] = []
    left_out: list[str] = []
    for name in names:
        try:
            column = _column(name, rows)
        except _Unfit as reason:
            left_out.append(str(reason))
        else:
            if isinstance(column, ColumnProfile):
                nested.append(column)
            else:
                plain[name] = column
    texts = list(zip(*(each.texts for each in plain.values()), strict=True)) or [()] * len(rows)
    return Cells(
        "json",
        {},
        table_of(texts, tuple(plain), [row.line for row in rows]),
        {name: JSON_SHAPES[each.kind] for name, each in plain.items()},
        tuple(left_out),
        bad,
        tuple(nested),
        names,
        unit,
        {name: each.strange for name, each in plain.items() if each.strange},
    )


@dataclass(frozen=True)
class _Plain:
    """A column of plain values as texts, and its values of another kind."""

    kind: str
    texts: Sequence[str | None]
    strange: tuple[Outlier, ...]


def _column(name: str, rows: Sequence[Row]) -> _Plain | ColumnProfile:
    """Return a column's values, or its type if they are nested. Raises _Unfit."""
    if name_problem(name, top=True) or {'"', "'"} <= set(name):
        raise _Unfit(f"{name!r} cannot name a column")
    values = [row.value.get(name) for row in rows]
    kinds = Counter(_kind(cell) for cell in values if cell is not None)
    kind, count = kinds.most_common(1)[0] if kinds else ("text", 0)
    others = kinds.total() - count
    if others * _ONE_IN > kinds.total() or (others and kind in _NESTED):
        raise _Unfit(f"{name} is {_or(kinds)} in different rows, and no type takes both")
    if kind in _NESTED:
        return _nested(name, values)
    beyond = [cell for cell in values if _kind(cell) == "number" and _is_beyond(cell)]
    if len(beyond) * _ONE_IN > kinds.total():
        raise _too_large(name, beyond[0])
    strange = [
        Outlier(row.line, json.dumps(cell))
        for row, cell in zip(rows, values, strict=True)
        if cell is not None and _kind(cell) != kind
    ]
    texts = [_text(cell) if _kind(cell) == kind else None for cell in values]
    return _Plain(kind, texts, tuple(strange))


def _is_beyond(number: Any) -> bool:
    """Return whether a number is none that the job reads: it takes 1e400 for no text either."""
    return not _NUMBER.fullmatch(str(number))


def _too_large(name: str, number: Any) -> _Unfit:
    return _Unfit(f"{name} has numbers that are too large, such as {str(number)[:_LONGEST]}")


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int() | Number():
            return "number"
        case dict():
            return "object"
        case list():
            return "list"
        case _:
            return "text" if isinstance(value, str) else ""


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _or(kinds: Mapping[str, int]) -> str:
    return " or ".join(f"{'an' if kind == 'object' else 'a'} {kind}" for kind in kinds)


def _nested(name: str, cells: Sequence[Any]) -> ColumnProfile:
    form = _Form()
    for cell in cells:
        form.see(cell)
    nulls = cells.count(None)
    profile = form.profile(name)
    return ColumnProfile(name, profile.type, len(cells), nulls, parts=profile.parts)


@dataclass
class _Form:
    """The kinds of the values at one place in nested values."""

    kinds: set[str] = field(default_factory=set)
    fields: "dict[str, _Form]" = field(default_factory=dict)
    items: "list[_Form]" = field(default_factory=list)  # one, if any list has an item
    moments: set[str] = field(default_factory=lambda: set(_MOMENTS))
    numbers: str = "BIGINT"
    beyond: Any = None

    def see(self, value: Any) -> None:
        """Take account of one more value."""
        if value is None:
            return
        self.kinds.add(kind := _kind(value))
        if kind == "object":
            for key, each in value.items():
                self.fields.setdefault(key, _Form()).see(each)
        elif kind == "list":
            self.items = self.items or [_Form()]
            for each in value:
                self.items[0].see(each)
        elif kind == "text":
            self.moments = {m for m in self.moments if _is_moment(value, m)}
        elif kind == "number":
            self.numbers = max(self.numbers, _number_type(value), key=_WIDTHS.index)
            self.beyond = value if _is_beyond(value) else self.beyond

    def profile(self, name: str) -> ColumnProfile:
        """Return the type of all values. Raises _Unfit."""
        if len(self.kinds) > 1:
            raise _Unfit(f"{name} has values that are {_or(dict.fromkeys(self.kinds, 0))}")
        kind = next(iter(self.kinds), "")
        if kind == "object":
            return ColumnProfile(name, "STRUCT()", parts=tuple(self._parts(name)))
        if kind == "list":
            item = (self.items or [_Form()])[0].profile(f"{name}[]")
            return ColumnProfile(name, "[]", parts=(item,))
        if self.beyond is not None:
            raise _too_large(name, self.beyond)
        if kind == "number":
            return ColumnProfile(name, self.numbers)
        moment = next((m for m in MOMENTS if m in self.moments), "") if kind == "text" else ""
        return ColumnProfile(name, _PARTS[moment or kind])

    def _parts(self, name: str) -> Iterator[ColumnProfile]:
        lowered = {key.lower() for key in self.fields}
        if not self.fields or len(lowered) < len(self.fields):
            raise _Unfit(f"{name} has no keys, or keys that differ by case only")
        for key, form in self.fields.items():
            if name_problem(key, top=False) or {'"', "'"} <= set(key):
                raise _Unfit(f"{name} has the key {key!r}, which cannot name a column")
            yield form.profile(key)


def _is_moment(value: str, moment: str) -> bool:
    if not _MOMENTS[moment].fullmatch(value):
        return False
    try:
        return moment == "time" or bool(date.fromisoformat(value[:10]))
    except ValueError:
        return False


_WIDTHS = ("BIGINT", "HUGEINT", "DOUBLE")


def _number_type(value: Any) -> str:
    if isinstance(value, str) or abs(value) >= 10**38:
        return "DOUBLE"
    return "BIGINT" if -_INT64 <= value < _INT64 else "HUGEINT"


def _refuse_twice(names: Sequence[str]) -> None:
    lowered = Counter(name.lower() for name in names)
    if twice := next((name for name in names if lowered[name.lower()] > 1), ""):
        raise refusal(
            f"has keys that differ from {twice!r} by case only",
            "Give each column a name of its own (upper and lower case are the same).",
        )
