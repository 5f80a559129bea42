"""A contract drafted from a sample: what every row of it keeps to, with room for other days.

Only what the sample itself passes is asked for. Limits are wide: they are to catch a broken file
and not an unusual one, and whoever knows the data makes them narrower.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from cli.column_names import looks_like_a_key, looks_like_money, looks_personal
from cli.draft_types import Quoted, Type, comment, dumped, name_of, type_of
from cli.sample import Sample, Seen

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
# Drafted from {rows:,} rows of {source}: what all of them keep to, with room for other days.
# Make it narrower where you know more, then: lakegate contract check, test, push.
"""


def draft(found: Sample, table: str, source: str) -> str:
    """The text of a contract for files like the sample; `source` names it."""
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
    for seen in found.columns:
        lines += (f"      # {_told(seen)}\n", dumped([_property(seen, keys.get(seen.name))], 6))
    return "".join(lines)


def _settings(found: Sample) -> Mapping[str, Any]:
    options = {name: Quoted(value) for name, value in found.options.items()}
    return {"format": found.format, **({"options": options} if options else {})}


def _keys(columns: Iterable[Seen]) -> dict[str, str]:
    """Of the columns that likely identify a row, the first is the key, the others are unique."""
    likely = [seen.name for place, seen in enumerate(columns) if _may_be_key(seen, place)]
    return {name: "unique" if number else "primaryKey" for number, name in enumerate(likely)}


def _may_be_key(seen: Seen, place: int) -> bool:
    """Whether all values differ in a column that is named like a key, or the first of all."""
    return (
        (looks_like_a_key(seen.name) or (place == 0 and seen.rows >= _MANY))
        and seen.rows > 1
        and seen.distinct == seen.rows
        and seen.longest <= _LONGEST_KEY
        and type_of(seen).logical in ("string", "integer")
    )


def _property(seen: Seen, key: str | None) -> dict[str, Any]:
    type_ = type_of(seen)
    found: dict[str, Any] = {"name": name_of(seen.name), **type_.declaration}
    if seen.rows and not seen.nulls:
        found["required"] = True
    if key:
        found[key] = True
    if _is_personal(seen):
        found["classification"] = "confidential"
    if _is_coded(seen, type_) and not key:
        found["enum"] = [{"value": Quoted(value)} for value in seen.values]
    elif options := dict(_options(seen, type_, is_key=key is not None)):
        found["logicalTypeOptions"] = options
    return found


def _options(seen: Seen, type_: Type, *, is_key: bool) -> Iterator[tuple[str, Any]]:
    if seen.nulls == seen.rows:
        return
    match type_.logical:
        case "string" if type_.physical != "binary":
            yield from _text_options(seen)
        case "integer" | "number":
            yield from _range(seen, type_, is_key=is_key)
        case "date" | "timestamp":
            if earliest := _new_year_before(seen.first):
                yield "minimum", Quoted(earliest + type_.clock)


def _text_options(seen: Seen) -> Iterator[tuple[str, Any]]:
    length = (
        f"{seen.shortest}" if seen.shortest == seen.longest else f"{seen.shortest},{seen.longest}"
    )
    if seen.shape == "letters":
        yield "pattern", Quoted(f"^[A-Z]{{{length}}}$")
    elif seen.shape == "digits" and seen.shortest == seen.longest:
        yield "pattern", Quoted(f"^[0-9]{{{length}}}$")
    elif seen.shape in ("digits", *_PATTERNS):
        yield "pattern", Quoted(_PATTERNS.get(seen.shape, "^[0-9]+$"))
    elif seen.longest:
        yield "maxLength", int(_wide(Decimal(seen.longest)))


def _range(seen: Seen, type_: Type, *, is_key: bool) -> Iterator[tuple[str, Any]]:
    """Zero, or far below the least; and, unless it is a number that goes on and on, far above."""
    if seen.low is None or seen.high is None or max(-seen.low, seen.high) > 1e15:
        return
    low, high = Decimal(repr(seen.low)), Decimal(repr(seen.high))
    lowest = Decimal(0) if low >= 0 else -_wide(-low)
    if type_.holds(lowest):
        yield "minimum", lowest
    if high > 0 and not is_key and not looks_like_a_key(seen.name) and type_.holds(_wide(high)):
        yield "maximum", _wide(high)


def _wide(most: Decimal) -> Decimal:
    """The least of 1, 2, 5, 10, 20, 50 … (and 0.5, 0.2 …) that is twice as much, at least."""
    power = Decimal(1).scaleb((2 * most).adjusted())
    return next(step * power for step in (1, 2, 5, 10) if step * power >= 2 * most)


def _new_year_before(first: str) -> str:
    """The first day of the year before a moment's, "" where there is none."""
    year = re.match(r"(\d{4})-\d\d-\d\d(?!.*BC)", first)
    return f"{int(year[1]) - 1:04d}-01-01" if year and int(year[1]) > 1 else ""


def _is_personal(seen: Seen) -> bool:
    return looks_personal(seen.name) or seen.shape in _PERSONAL_SHAPES


def _is_coded(seen: Seen, type_: Type) -> bool:
    """Whether a text is one of few words, each of which comes again and again."""
    few = len(seen.values) > 1 and 5 * len(seen.values) <= seen.rows - seen.nulls
    is_text = type_.logical == "string" and seen.longest <= _LONGEST_CODE
    return few and is_text and not _is_personal(seen)


def _told(seen: Seen) -> str:
    """What was seen, for the author; of a personal column no value."""
    given = seen.rows - seen.nulls
    parts = [f"{seen.nulls:,} of {seen.rows:,} are null" if seen.nulls else f"{given:,} values"]
    if given and seen.distinct:
        parts.append("all different" if seen.distinct == given else f"{seen.distinct:,} different")
    if given and seen.distinct and not _is_personal(seen):
        ends = (seen.low, seen.high) if type_of(seen).logical in ("integer", "number") else ()
        low, high = ends or (seen.first, seen.last)
        is_finite = low is not None and high is not None
        parts.append(f"from {comment(low)} to {comment(high)}" if is_finite else "not all finite")
    if looks_like_money(seen.name) and type_of(seen).physical in ("", "double", "float"):
        parts.append("if this is money, make it a decimal")
    return ", ".join(parts)
