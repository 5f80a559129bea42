"""Literals of a contract: values and bounds of their column's type."""

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal

from lakegate.contract.columns import Column
from lakegate.contract.text.yaml import Scalar

NUMERIC = ("int", "bigint", "float", "double", "decimal")
MOMENTS = ("date", "timestamp", "timestamp_ntz")

TIME_PATTERN = "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]$"


def literal(value: Scalar, text: str, column: Column) -> str:
    """Return a contract's scalar, written as `text`, as a literal of the column's type.

    The literal is text that Spark casts to the type without loss; timestamps are in UTC. Raises
    ValueError, with a sentence for people, when the scalar is no value of that type.
    """
    return _LITERALS[column.kind](value, text, column)


def in_order(low: str, high: str, column: Column) -> bool:
    """Return if one of the column's literals is less than another; times sort as their text."""
    if column.kind in NUMERIC:
        return Decimal(low) < Decimal(high)
    return low < high


def _text(value: Scalar, text: str, column: Column) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{text} is not text, but the column is {column.type}: put it in quotes")
    return value


def _boolean(value: Scalar, text: str, column: Column) -> str:
    if not isinstance(value, bool):
        raise ValueError(f"{text!r} is not true or false, and the column is boolean")
    return "true" if value else "false"


def _whole(value: Scalar, text: str, column: Column) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _mismatch("whole number", value, text, column)
    bits = 31 if column.type == "int" else 63
    if not -(2**bits) <= value < 2**bits:
        raise ValueError(f"{text} is beyond what the column's type {column.type} can hold")
    return str(value)


def _number(value: Scalar, text: str, column: Column) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _mismatch("number", value, text, column)
    try:
        finite = math.isfinite(float(value))
    except OverflowError:
        finite = False
    if not finite:
        raise ValueError(f"{text} is not a finite number")
    return repr(value)


def _exact(value: Scalar, text: str, column: Column) -> str:
    shortest = _number(value, text, column)
    number = Decimal(text if isinstance(value, float) else shortest)
    digits, scale = map(int, column.type[len("decimal(") : -1].split(","))
    if number and (number.adjusted() >= digits - scale or _fraction(number) > scale):
        raise ValueError(f"{text} does not fit the column's type {column.type}")
    return f"{number:f}"


def _fraction(number: Decimal) -> int:
    """Return the number of digits after the point; negative for a number that ends in zeros."""
    _, digits, exponent = number.as_tuple()
    trailing = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    return -(int(exponent) + trailing)


def _date(value: Scalar, text: str, column: Column) -> str:
    try:
        return date.fromisoformat(_matching(r"\d{4}-\d\d-\d\d", value)).isoformat()
    except ValueError:
        raise ValueError(f"{text!r} is not a date: write it as 2013-12-31") from None


def _timestamp(value: Scalar, text: str, column: Column) -> str:
    zoned = column.type == "timestamp"
    zone = r"(Z|[+-]\d\d:\d\d)?" if zoned else ""
    try:
        form = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?" + zone + ")?"
        moment = datetime.fromisoformat(_matching(form, value))
        if not zoned:
            return moment.isoformat()
        moment = moment.replace(tzinfo=moment.tzinfo or UTC)
        return moment.astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        example = "2013-12-31T23:59:59" + ("Z" if zoned else "")
        raise ValueError(
            f"{text!r} is not a {column.type}: write it like {example}, quoted"
        ) from None


def _time(value: Scalar, text: str, column: Column) -> str:
    try:
        return _matching(TIME_PATTERN, value)
    except ValueError:
        raise ValueError(f'{text!r} is not a time: write it like "23:59:59"') from None


def _none(value: Scalar, text: str, column: Column) -> str:
    within = "" if column.kind == "binary" else ": restrict what lies within it"
    reason = f"a column of type {column.kind} has no literals, so no values or ranges can be given"
    raise ValueError(reason + within)


def _matching(pattern: str, value: Scalar) -> str:
    if not isinstance(value, str) or not re.fullmatch(pattern, value, re.ASCII):
        raise ValueError
    return value


def _mismatch(expected: str, value: Scalar, text: str, column: Column) -> ValueError:
    shown = repr(text) if isinstance(value, str) else text
    return ValueError(f"{shown} is not a {expected}, but the column is {column.type}")


_LITERALS: dict[str, Callable[[Scalar, str, Column], str]] = {
    "": lambda value, text, column: text,  # the type itself had to be refused
    "string": _text,
    "boolean": _boolean,
    "int": _whole,
    "bigint": _whole,
    "float": _number,
    "double": _number,
    "decimal": _exact,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp,
    "time": _time,
    **dict.fromkeys(("binary", "struct", "array", "map"), _none),
}
