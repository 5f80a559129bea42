"""Parse text as a column's type, completely and exactly, or mark the cell broken. Pure: SQL text.

Spark's own casts accept too much: `2013-12-31 or so` as a date, `12:30` as a time of today, `1.5d`
and `0x1p3` as numbers, `1e400` as infinity. They round `1.239` to a decimal(12,2) and truncate
nanoseconds. Here each of these is a broken cell.
"""

import re
from dataclasses import dataclass

from lakegate.contract.columns import Column
from spark_jobs.files.text.text_lines import literal
from spark_jobs.schema.types import digits

_DAY = "(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6}0*)?)?"
_ZONE = " ?(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)"
_QUOTED, _ZONE_LETTER = re.compile("'[^']*'"), re.compile("[XxZ]")  # of a pattern
_NO_NUMBERS = "('nan', 'inf', '+inf', '-inf', 'infinity', '+infinity', '-infinity')"
_TRUTHS = "('true', 'false', 't', 'f', 'yes', 'no', 'y', 'n', '1', '0')"
# Spark's cast to a whole number ignores only blanks and control characters, at either end.
_WHOLE = "(left({text}, 1) BETWEEN '+' AND '9' AND right({text}, 1) BETWEEN '0' AND '9')"
_FITS = {
    "boolean": f"lower({{text}}) IN {_TRUTHS}",
    "int": _WHOLE,
    "bigint": _WHOLE,
    "date": f"{{text}} RLIKE '^{_DAY}\\\\z'",
    "timestamp": f"{{text}} RLIKE '^{_DAY}({_TIME}({_ZONE})?)?\\\\z'",
    "timestamp_ntz": f"{{text}} RLIKE '^{_DAY}({_TIME})?\\\\z'",
    "binary": "base64({value}) = {text}",
    "string": "true",
}
_FLOATING = (
    "({text} RLIKE '^[0-9.eE+-]*+\\\\z' AND abs({value}) < double('Infinity'))"
    f" OR lower({{text}}) IN {_NO_NUMBERS}"
)
# More digits after the decimal point than the type's scale must be zeros.
_DECIMAL = "{text} RLIKE '^[+-]?[0-9]*+([.][0-9]{{0,{scale}}}0*+)?\\\\z'"
_DATES = ("date", "timestamp", "timestamp_ntz")
IS_NO_NUMBER = f"lower({{text}}) IN {_NO_NUMBERS}"


@dataclass(frozen=True)
class Cell:
    """A cell in Spark SQL: its value, and the condition that it is broken, which is never null.

    The value of a broken cell is null or must not be used.
    """

    value: str
    broken: str


def beyond_years(value: str) -> str:
    """Return the condition that a date or time is in none of the years 1 to 9999, in UTC.

    Python, Arrow and SQL itself know no others. It is null for null.
    """
    return f"year({value}) NOT BETWEEN 1 AND 9999"


def read_cell(text: str, column: Column) -> Cell:
    """Parse the cell of a column, which may declare a format or a zone for its dates and times."""
    if not column.written and not column.zone:
        return read_text(text, column.type)
    if column.written:
        pattern = literal(column.written)
        value = f"CAST(try_to_timestamp({text}, {pattern}) AS {column.type})"
        cell = Cell(value, f"({text} IS NOT NULL AND coalesce({beyond_years(value)}, true))")
    else:
        cell = read_text(text, column.type)
    return _in_zone(cell, text, column) if column.zone else cell


def _in_zone(cell: Cell, text: str, column: Column) -> Cell:
    """Place a time without a zone into the column's; times that its clocks skipped are broken."""
    zone = literal(column.zone)
    named = _names_zone(text, column.written)
    moment = f"to_utc_timestamp({cell.value}, {zone})"
    skipped = f"from_utc_timestamp({moment}, {zone}) <> {cell.value}"
    wrong = f"({skipped} OR {beyond_years(moment)})"
    broken = f"({cell.broken} OR coalesce(NOT ({named}) AND {wrong}, false))"
    return Cell(f"if({named}, {cell.value}, {moment})", broken)


def _names_zone(text: str, written: str) -> str:
    """Return the condition that a time, by the pattern `written` or ISO 8601, has its own zone."""
    if _ZONE_LETTER.search(_QUOTED.sub("", written)):
        return "true"
    zone = "(Z|UTC)" if written else f"^{_DAY}{_TIME}{_ZONE}"
    return f"{text} RLIKE '{zone}\\\\z'"


def read_text(text: str, type_: str) -> Cell:
    """Parse the SQL expression `text` as a value of the Spark SQL type `type_`.

    Null stays null and is never broken. Binary values are base64.
    """
    value = _value(text, type_)
    if type_.startswith("decimal("):
        fits = _DECIMAL.format(text=text, scale=digits(type_)[1])
    elif type_ in ("float", "double"):
        fits = _FLOATING.format(text=text, value=value)
    else:
        fits = _FITS[type_].replace("{text}", text).replace("{value}", value)
    if type_ in _DATES:
        fits = f"{fits} AND NOT {beyond_years(value)}"
    if type_ == "string":
        return Cell(value, "false")
    return Cell(
        value, f"({text} IS NOT NULL AND NOT coalesce({value} IS NOT NULL AND ({fits}), false))"
    )


def _value(text: str, type_: str) -> str:
    if type_ == "string":
        return text
    if type_ == "binary":
        return f"try_to_binary({text}, 'base64')"
    return f"try_cast({text} AS {type_})"
