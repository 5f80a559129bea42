"""Compute checks in plain Python, and provide the values to try them on."""

import math
import re
import statistics
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from lakegate.contract.checks import Check, Metric
from lakegate.contract.rules import Quantile, Rule

_ENDS = (
    date(1, 1, 1),
    date(1582, 10, 4),
    date(1582, 10, 15),
    date(1969, 12, 31),
    date(9999, 12, 31),
)
_MOMENTS = [datetime(d.year, d.month, d.day, 23, 59, 59, 999999) for d in _ENDS]  # noqa: DTZ001
_REAL = (0.0, -0.0, 0.1, 0.3, 0.1 + 0.2, -1.5, 1e-7, 5e-324, 2.0**53, 1e21, 1e30, 1e308, -1e308)


def single(value: float) -> float:
    """Return the nearest value of Spark's float, which has 32 bits."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


# Values for each type of column, besides null.
VALUES: Mapping[str, Sequence[Any]] = {
    "string": (
        *("", " ", "\u00a0", "a", "A", "a ", "ab", "12345", "12345\n", "N/A", "null", "NaN"),
        *("\u00e9", "e\u0301", "\U0001f600", "\U0001f600a", "\x00", "\ufffd", "a\tb", "\x7f"),
        *("\u2028", "it's", "\\", "\\'", "${env:HOME}", "\u200b", "\u00df", "\u0130", '"', "`"),
    ),
    "int": (0, 1, -1, 2, 3, 6, 7, 2**31 - 1, -(2**31)),
    "bigint": (0, 1, -1, 6, 7, 2**53 + 1, 2**63 - 1, -(2**63)),
    "decimal(38,6)": tuple(map(Decimal, ("0", "0.1", "-0.3", "1.05", "1e-6", "1e28", "-1e28"))),
    "double": (*_REAL, math.nan, math.inf, -math.inf),
    "float": tuple(map(single, (*_REAL[:7], 1e-45, 1e21, 3e38, math.nan, math.inf))),
    "boolean": (True, False),
    "date": (*_ENDS, date(2024, 2, 29)),
    "timestamp": tuple(moment.replace(tzinfo=UTC) for moment in _MOMENTS),
    "timestamp_ntz": tuple(_MOMENTS),
    "array<string>": ([], [None], ["a"], ["a", None], ["a", "a"], [None, None], ["", "\x00"]),
}  # fmt: skip

# Patterns of ECMA-262, and the same in Python's syntax.
PATTERNS = {
    "^[0-9]{5}$": r"\A[0-9]{5}\Z",
    "a": "a",
    "^.$": r"\A[^\n\r\u2028\u2029]\Z",
    r"\s": r"[\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]",
    r"^\w+$": r"\A[A-Za-z0-9_]+\Z",
    r"\\|'": r"\\|'",
}
_UNDECODED = {*map(chr, (*range(9), 11, 12, *range(14, 32), 127)), "\ufffd"}


def count(check: Check, values: Iterable[Any], *, narrow: bool) -> int:
    """Return how many of the values the check counts; `narrow` marks floats of 32 bits."""
    return sum(map(_counts(check, narrow=narrow), values))


def _counts(check: Check, *, narrow: bool) -> Callable[[Any], bool]:
    rule = check.values
    match check.metric:
        case Metric.NULL:
            return lambda value: value is None
        case Metric.MISSING:
            listed = [None if t is None else t for t in rule.missing_values]
            return lambda value: value in listed
        case Metric.UNDECODED:
            return lambda value: value is not None and not _UNDECODED.isdisjoint(value)
        case _:
            return lambda value: value is not None and _invalid(value, rule, narrow=narrow)


def _invalid(value: Any, rule: Rule, *, narrow: bool) -> bool:
    if isinstance(value, float) and math.isnan(value):
        return True
    if isinstance(value, list):
        return _bad_size(len(value), rule.min_items, rule.max_items) or (
            rule.unique_items and len(set(value)) < len(value)
        )
    if isinstance(value, str) and _bad_text(value, rule):
        return True
    listed = [literal(text, value) for text in rule.valid_values]
    return bool(
        (listed and value not in listed)
        or (rule.minimum is not None and value < literal(rule.minimum, value))
        or (rule.maximum is not None and value > literal(rule.maximum, value))
        or (rule.exclusive_minimum is not None and value <= literal(rule.exclusive_minimum, value))
        or (rule.exclusive_maximum is not None and value >= literal(rule.exclusive_maximum, value))
        or (rule.multiple_of is not None and not _multiple(value, rule.multiple_of, narrow=narrow))
    )


def _bad_text(value: str, rule: Rule) -> bool:
    pattern = PATTERNS[rule.pattern] if rule.pattern else ""
    return _bad_size(len(value), rule.min_length, rule.max_length) or not re.search(pattern, value)


def _bad_size(size: int, low: int | None, high: int | None) -> bool:
    return (low is not None and size < low) or (high is not None and size > high)


def literal(text: str, like: Any) -> Any:
    """Return a literal of a contract as a value like another one."""
    if isinstance(like, bool):
        return text == "true"
    if isinstance(like, datetime):
        return datetime.fromisoformat(text)
    if isinstance(like, date):
        return date.fromisoformat(text)
    return type(like)(text)


def _multiple(value: Any, step: str, *, narrow: bool) -> bool:
    if not isinstance(value, float):
        return Fraction(value) % Fraction(step) == 0
    if abs(value) >= 1e38:
        return False  # further than Spark's numbers with digits go
    return Fraction(_digits(value, narrow=narrow)) % Fraction(step) == 0


def _digits(value: float, *, narrow: bool) -> str:
    """Return the shortest digits of this number, of 32 bits if it is `narrow`."""
    shortest = (f"{value:.{digits}g}" for digits in range(1, 18))
    same = single if narrow else float
    return next(text for text in shortest if same(float(text)) == value)


def aggregate(check: Check, values: Iterable[Any], now: datetime) -> float | Fraction | None:
    """Return the check's aggregate of the values, exact as a fraction; None for no value."""
    known = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
    if not known:
        return None
    match check.metric, check.rule:
        case Metric.SUM, _:
            return math.fsum(known) if isinstance(known[0], float) else sum(map(Fraction, known))
        case Metric.MEAN, _:
            return float(sum(map(Fraction, known)) / len(known))
        case Metric.STDDEV, _:
            return statistics.stdev(map(float, known)) if len(known) > 1 else None
        case Metric.QUANTILE, Quantile(share):
            return float(sorted(known)[max(math.ceil(float(share) * len(known)), 1) - 1])
        case _:
            newest = max(known)
            moment = newest if isinstance(newest, datetime) else datetime(*newest.timetuple()[:3])  # noqa: DTZ001
            return (now - moment.replace(tzinfo=UTC)).total_seconds() / 3600
