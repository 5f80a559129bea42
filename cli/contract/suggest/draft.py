"""Draft a contract from a sample: limits that every row meets, with a margin.

The sample itself passes its draft. The limits are wide, to catch broken files rather than unusual
ones; the author tightens them.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from access.contract.hints import looks_like_a_key, looks_like_money, looks_personal
from cli.contract.suggest.columns import ColumnProfile, Outlier
from cli.contract.suggest.forms import OFTEN
from cli.contract.suggest.sample import Sample
from cli.contract.suggest.yaml import Quoted, comment, dumped, name_of
from lakegate.contract.written import FORMATS, Format
from lakegate.errors import LakegateError

_LARGEST = {"int": 2**31 - 1, "": 2**63 - 1}


@dataclass(frozen=True)
class Type:
    """A logicalType, its physicalType ("" for the default), and `more` keys of a nested one."""

    logical: str
    physical: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def declaration(self) -> dict[str, Any]:
        """Return the keys of a property that declare the type."""
        physical = {"physicalType": self.physical} if self.physical else {}
        return {"logicalType": self.logical, **physical, **self.more}

    @property
    def clock(self) -> str:
        """Return the suffix that makes a date midnight in this type."""
        if self.logical == "date":
            return ""
        return "T00:00:00" if self.physical else "T00:00:00Z"

    def holds(self, bound: Decimal) -> bool:
        """Return whether a column of the type can hold the number."""
        if self.physical.startswith("decimal"):
            digits, scale = map(int, self.physical[len("decimal(") : -1].split(","))
            return abs(bound) < Decimal(10) ** (digits - scale)
        return self.logical == "number" or abs(bound) <= _LARGEST[self.physical]


def _written(format_: Format) -> Type:
    options = {"logicalTypeOptions": {"format": Quoted(format_.pattern)}}
    return (
        Type("timestamp", "timestamp_ntz", options)
        if format_.has_time
        else Type("date", "", options)
    )


_SHAPES = {
    "boolean": Type("boolean"),
    "integer": Type("integer"),
    "whole": Type("integer", "decimal(38,0)"),
    "decimal": Type("number"),
    "number": Type("number"),
    "any number": Type("number"),
    "date": Type("date"),
    "timestamp": Type("timestamp", "timestamp_ntz"),
    "instant": Type("timestamp"),
    "time": Type("time"),
    **{pattern: _written(each) for pattern, each in FORMATS.items()},
}
_TYPES = {
    **dict.fromkeys(("VARCHAR", "JSON", '"NULL"'), Type("string")),
    "UUID": Type("string"),
    "BLOB": Type("string", "binary"),
    "BOOLEAN": Type("boolean"),
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT"), Type("integer", "int")
    ),
    **dict.fromkeys(("BIGINT", "UINTEGER"), Type("integer")),
    "UBIGINT": Type("integer", "decimal(20,0)"),
    **dict.fromkeys(("HUGEINT", "UHUGEINT"), Type("integer", "decimal(38,0)")),
    "FLOAT": Type("number", "float"),
    "DOUBLE": Type("number"),
    "DATE": Type("date"),
    "TIME": Type("time"),
    "TIMESTAMP WITH TIME ZONE": Type("timestamp"),
    **dict.fromkeys(
        ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
        Type("timestamp", "timestamp_ntz"),
    ),
}


def type_of(column: ColumnProfile) -> Type:
    """Return the type for a column. Raises LakegateError UNKNOWN_TYPE if contracts have none."""
    if column.type.startswith("DECIMAL"):
        return Type("number", column.type.lower())
    if column.parts:
        return _nested(column)
    if column.shape == "decimal" and looks_like_money(column.name):
        scale = max(column.scale, 2)
        return Type("number", f"decimal({max(column.digits + scale + 3, 12)},{scale})")
    known = _SHAPES.get(column.shape) or _TYPES.get(column.type)
    if known is None:
        message = f"{column.name} is {column.type}, a type that contracts do not support"
        raise LakegateError("UNKNOWN_TYPE", message)
    return known


def _nested(column: ColumnProfile) -> Type:
    parts = [(name_of(part.name), type_of(part).declaration) for part in column.parts]
    if column.type.endswith("]"):
        return Type("array", more={"items": parts[0][1]})
    if column.type.startswith("STRUCT("):
        return Type("object", more={"properties": [{"name": n, **type_} for n, type_ in parts]})
    return Type("map", more={"map": dict(parts)})


_FORMATS = ("uuid", "email", "ipv4", "uri")
_PATTERNS = {
    "mail": r"^[^@ ]+@[^@ ]+\.[^@ ]+$",
    "iban": "^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$",
}
_PERSONAL_SHAPES = ("email", "mail", "iban", "ipv4")
_LONGEST_CODE = 64
_LONGEST_KEY = 64
_MANY = 20
_SHOWN = 5
_HEAD = """\
# Drafted from {rows:,} rows of {source}: all of them pass{but}, with some margin.
{notes}# Tighten the limits where you know more, then run: lakegate contract check, test, push.
"""


def draft(sample: Sample, table: str, source: str, plain: Collection[str] = ()) -> str:
    """Return the text of a contract for files like the sample; `source` is the sample's name.

    The columns `plain` get no more than their type.
    """
    keys = _keys(column for column in sample.columns if column.name not in plain)
    head = {
        "kind": "DataContract",
        "apiVersion": "v3.2.0",
        "id": table.replace(".", "-"),
        "version": "1.0.0",
        "status": "draft",
        "support": [{"channel": Quoted(f"#{table.partition('.')[0]}-data"), "tool": "slack"}],
        "customProperties": [
            {"property": name, "value": value} for name, value in _settings(sample).items()
        ],
    }
    rows = {
        "metric": "rowCount",
        "mustBeBetween": [max(sample.rows // 10, 1), sample.rows * 10 or 10],
    }
    lines = [
        _head(sample, source),
        dumped(head),
        f"schema:\n  - name: {table}\n    logicalType: object\n    quality:\n",
        f"      # {sample.rows:,} rows in the sample\n{dumped([rows], 6)}    properties:\n",
    ]
    for column in sample.columns:
        rules = {} if column.name in plain else _rules(column, keys.get(column.name))
        lines += (
            *(
                f"      # {line}\n"
                for line in (_description(column), *_outliers(column, sample.unit))
            ),
            dumped([_property(column) | rules], 6),
        )
    return "".join(lines)


def _head(sample: Sample, source: str) -> str:
    notes = [f"Left out: {comment(each, 200)}." for each in sample.left_out]
    if sample.bad:
        lines = ", ".join(f"{row.line:,}" for row in sample.bad[:_SHOWN])
        many = f"{len(sample.bad):,} of its rows cannot be read"
        notes.append(f"{many}, each of which fails the file: {sample.unit} {lines}.")
    is_clean = not sample.bad and not any(column.strange for column in sample.columns)
    but = "" if is_clean else " but outliers"
    marked = "".join(f"# {note}\n" for note in notes)
    return _HEAD.format(rows=sample.rows, source=comment(source), but=but, notes=marked)


def _outliers(column: ColumnProfile, unit: str) -> Iterator[str]:
    """Yield the cells that break the draft, with their lines; no values of a personal column."""
    if column.strange:
        shown = ", ".join(_outlier(each, unit, column) for each in column.outliers)
        rest = column.strange - len(column.outliers)
        more = f" and {rest:,} more" if rest > 0 else ""
        yield f"outliers, each of which fails the file: {shown}{more}"


def _outlier(outlier: Outlier, unit: str, column: ColumnProfile) -> str:
    place = f"{unit} {outlier.line:,}"
    return place if _is_personal(column) else f"{place} has {comment(repr(outlier.text))}"


def _settings(sample: Sample) -> Mapping[str, Any]:
    options = {name: Quoted(value) for name, value in sample.options.items()}
    extra = {"extraColumns": "drop"} if sample.left_out else {}
    return {"format": sample.format, **({"options": options} if options else {}), **extra}


def _keys(columns: Iterable[ColumnProfile]) -> dict[str, str]:
    """Return the likely key columns: the first is the primary key, the others are unique."""
    likely = [column.name for place, column in enumerate(columns) if _may_be_key(column, place)]
    return {name: "unique" if number else "primaryKey" for number, name in enumerate(likely)}


def _may_be_key(column: ColumnProfile, place: int) -> bool:
    """Return whether a column is named like a key, or comes first, and all its values differ."""
    return (
        (looks_like_a_key(column.name) or (place == 0 and column.rows >= _MANY))
        and column.rows > 1
        and not column.strange
        and column.distinct == column.rows
        and column.longest <= _LONGEST_KEY
        and type_of(column).logical in ("string", "integer")
    )


def _property(column: ColumnProfile) -> dict[str, Any]:
    keys = {"name": name_of(column.name), **type_of(column).declaration}
    return keys | ({"classification": "confidential"} if _is_personal(column) else {})


def _rules(column: ColumnProfile, key: str | None) -> dict[str, Any]:
    """Return the keys of a property that restrict its values."""
    type_ = type_of(column)
    rules: dict[str, Any] = {}
    if column.rows and not column.nulls:
        rules["required"] = True
    if key:
        rules[key] = True
    if _is_coded(column, type_) and not key:
        rules["enum"] = [{"value": Quoted(value)} for value in column.values]
    elif options := dict(_options(column, type_, is_key=key is not None)):
        rules["logicalTypeOptions"] = {**type_.more.get("logicalTypeOptions", {}), **options}
    return rules


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
    if column.shape in _FORMATS:
        yield "format", column.shape
    elif column.shape == "letters":
        yield "pattern", Quoted(f"^[A-Z]{{{length}}}$")
    elif column.shape == "digits" and column.shortest == column.longest:
        yield "pattern", Quoted(f"^[0-9]{{{length}}}$")
    elif column.shape in ("digits", *_PATTERNS):
        yield "pattern", Quoted(_PATTERNS.get(column.shape, "^[0-9]+$"))
    elif column.form and not _is_personal(column):  # a form may spell out words of its texts
        yield "pattern", Quoted(column.form)
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
    few = not column.strange and len(column.values) > 1 and column.rarest >= OFTEN
    is_text = type_.logical == "string" and column.longest <= _LONGEST_CODE
    return few and is_text and not _is_personal(column)


def _description(column: ColumnProfile) -> str:
    """Describe a column for the author, without values if it is personal."""
    given, inferred = column.rows - column.nulls, type_of(column)
    is_number = inferred.logical in ("integer", "number")
    if column.rows and not given:
        return f"all {column.rows:,} values are null, so that the type is a guess"
    parts = [
        f"{column.nulls:,} of {column.rows:,} are null" if column.nulls else f"{given:,} values"
    ]
    if given and column.distinct:
        parts.append(
            "all different" if column.distinct == given else f"{column.distinct:,} different"
        )
    if _is_coded(column, inferred):
        parts.append(f"each at least {column.rarest:,} times")
    if given and column.distinct and not _is_personal(column):
        ends = (column.low, column.high) if is_number else ()
        low, high = ends or (column.first, column.last)
        is_finite = low is not None and high is not None
        parts.append(f"from {comment(low)} to {comment(high)}" if is_finite else "not all finite")
    is_inexact = is_number and inferred.physical in ("", "double", "float")
    if is_inexact and looks_like_money(column.name):
        parts.append("if this is money, make it a decimal")
    return ", ".join(parts)
