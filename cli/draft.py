"""Draft a contract from a sample: limits that every row meets, with a margin.

The sample itself passes its draft. The limits are wide, to catch broken files rather than unusual
ones; the author tightens them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from cli.contract_hints import looks_like_a_key, looks_like_money, looks_personal
from cli.draft_types import Quoted, Type, comment, dumped, name_of, type_of
from cli.sample import ColumnProfile, Sample

_PATTERNS = {
    "uuid": "^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$",
    "email": r"^[^@ ]+@[^@ ]+\.[^@ ]+$",
    "iban": "^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$",
}
_PERSONAL_SHAPES = ("email", "iban")
_LONGEST_CODE = 40
_LONGEST_KEY = 64
_MANY = 20
_HEAD = """\
# Drafted from {rows:,} rows of {source}: all of them pass, with some margin.
# Tighten the limits where you know more, then run: lakegate contract check, test, push.
"""


def draft(found: Sample, table: str, source: str) -> str:
    """Return the text of a contract for files like the sample; `source` is the sample's name."""
    keys = _keys(found.columns)
    head = {
        "kind": "DataContract",
        "apiVersion": "v3.1.0",
        "id": table.replace(".", "-"),
        "version": "1.0.0",
        "status": "draft",
        "support": [{"channel": Quoted(f"#{table.partition('.')[0]}-data"), "tool": "slack"}],
        "customProperties": [
            {"property": name, "value": value} for name, value in _settings(found).items()
        ],
    }
    rows = {
        "metric": "rowCount",
        "mustBeBetween": [max(found.rows // 10, 1), found.rows * 10 or 10],
    }
    lines = [
        _HEAD.format(rows=found.rows, source=comment(source)),
        dumped(head),
        f"schema:\n  - name: {table}\n    logicalType: object\n    quality:\n",
        f"      # {found.rows:,} rows in the sample\n{dumped([rows], 6)}    properties:\n",
    ]
    for column in found.columns:
        lines += (
            f"      # {_description(column)}\n",
            dumped([_property(column, keys.get(column.name))], 6),
        )
    return "".join(lines)


def _settings(found: Sample) -> Mapping[str, Any]:
    options = {name: Quoted(value) for name, value in found.options.items()}
    return {"format": found.format, **({"options": options} if options else {})}


def _keys(columns: Iterable[ColumnProfile]) -> dict[str, str]:
    """Return the likely key columns: the first is the primary key, the others are unique."""
    likely = [column.name for place, column in enumerate(columns) if _may_be_key(column, place)]
    return {name: "unique" if number else "primaryKey" for number, name in enumerate(likely)}


def _may_be_key(column: ColumnProfile, place: int) -> bool:
    """Return whether a column is named like a key, or comes first, and all its values differ."""
    return (
        (looks_like_a_key(column.name) or (place == 0 and column.rows >= _MANY))
        and column.rows > 1
        and column.distinct == column.rows
        and column.longest <= _LONGEST_KEY
        and type_of(column).logical in ("string", "integer")
    )


def _property(column: ColumnProfile, key: str | None) -> dict[str, Any]:
    type_ = type_of(column)
    found: dict[str, Any] = {"name": name_of(column.name), **type_.declaration}
    if column.rows and not column.nulls:
        found["required"] = True
    if key:
        found[key] = True
    if _is_personal(column):
        found["classification"] = "confidential"
    if _is_coded(column, type_) and not key:
        found["enum"] = [{"value": Quoted(value)} for value in column.values]
    elif options := dict(_options(column, type_, is_key=key is not None)):
        found["logicalTypeOptions"] = options
    return found


def _options(column: ColumnProfile, type_: Type, *, is_key: bool) -> Iterator[tuple[str, Any]]:
    if column.nulls == column.rows:
        return
    match type_.logical:
        case "string" if type_.physical != "binary":
            yield from _text_options(column)
        case "integer" | "number":
            yield from _range(column, type_, is_key=is_key)
        case "date" | "timestamp":
            if earliest := _new_year_before(column.first):
                yield "minimum", Quoted(earliest + type_.clock)


def _text_options(column: ColumnProfile) -> Iterator[tuple[str, Any]]:
    length = (
        f"{column.shortest}"
        if column.shortest == column.longest
        else f"{column.shortest},{column.longest}"
    )
    if column.shape == "letters":
        yield "pattern", Quoted(f"^[A-Z]{{{length}}}$")
    elif column.shape == "digits" and column.shortest == column.longest:
        yield "pattern", Quoted(f"^[0-9]{{{length}}}$")
    elif column.shape in ("digits", *_PATTERNS):
        yield "pattern", Quoted(_PATTERNS.get(column.shape, "^[0-9]+$"))
    elif column.longest:
        yield "maxLength", int(_wide(Decimal(column.longest)))


def _range(column: ColumnProfile, type_: Type, *, is_key: bool) -> Iterator[tuple[str, Any]]:
    """Yield the minimum and, unless the numbers keep growing, the maximum, with margins."""
    if column.low is None or column.high is None or max(-column.low, column.high) > 1e15:
        return
    low, high = Decimal(repr(column.low)), Decimal(repr(column.high))
    lowest = Decimal(0) if low >= 0 else -_wide(-low)
    if type_.holds(lowest):
        yield "minimum", lowest
    if high > 0 and not is_key and not looks_like_a_key(column.name) and type_.holds(_wide(high)):
        yield "maximum", _wide(high)


def _wide(most: Decimal) -> Decimal:
    """Return the least of 1, 2, 5, 10, 20, 50 … (and 0.5, 0.2 …) that is at least twice as much."""
    power = Decimal(1).scaleb((2 * most).adjusted())
    return next(step * power for step in (1, 2, 5, 10) if step * power >= 2 * most)


def _new_year_before(first: str) -> str:
    """Return the first day of the year before that of a moment, "" if there is none."""
    year = re.match(r"(\d{4})-\d\d-\d\d(?!.*BC)", first)
    return f"{int(year[1]) - 1:04d}-01-01" if year and int(year[1]) > 1 else ""


def _is_personal(column: ColumnProfile) -> bool:
    return looks_personal(column.name) or column.shape in _PERSONAL_SHAPES


def _is_coded(column: ColumnProfile, type_: Type) -> bool:
    """Return whether a text column has few values, each of them repeated often."""
    few = len(column.values) > 1 and 5 * len(column.values) <= column.rows - column.nulls
    is_text = type_.logical == "string" and column.longest <= _LONGEST_CODE
    return few and is_text and not _is_personal(column)


def _description(column: ColumnProfile) -> str:
    """Describe a column for the author, without values if it is personal."""
    given = column.rows - column.nulls
    parts = [
        f"{column.nulls:,} of {column.rows:,} are null" if column.nulls else f"{given:,} values"
    ]
    if given and column.distinct:
        parts.append(
            "all different" if column.distinct == given else f"{column.distinct:,} different"
        )
    if given and column.distinct and not _is_personal(column):
        ends = (column.low, column.high) if type_of(column).logical in ("integer", "number") else ()
        low, high = ends or (column.first, column.last)
        is_finite = low is not None and high is not None
        parts.append(f"from {comment(low)} to {comment(high)}" if is_finite else "not all finite")
    if looks_like_money(column.name) and type_of(column).physical in ("", "double", "float"):
        parts.append("if this is money, make it a decimal")
    return ", ".join(parts)
