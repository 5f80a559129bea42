"""Count a column's values that break a rule, over Arrow data. Pure.

Each function does what the Spark SQL of `check_sql` does, or declines.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from math import isfinite
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakegate.contract.checks import Check, Metric
from lakegate.contract.columns import Column
from lakegate.contract.rules import Rule
from lakegate.ecma_patterns import PATTERNS
from spark_jobs.audit.arrow.patterns import means_the_same, re2_pattern
from spark_jobs.files.arrow.values import (
    FLOATING,
    INTEGERS,
    Values,
    arrow_type,
    missing,
    trues,
    without_negative_zero,
)
from spark_jobs.schema.types import digits

_UNDECODED = r"[\x{0}-\x{8}\x{b}\x{c}\x{e}-\x{1f}\x{7f}\x{fffd}]"
_STEP = r"[1-9]\d{0,17}"
_LARGEST_SIZE = 2**31
_OUTSIDE: Mapping[str, tuple[Callable[..., Any], Callable[[Any, Any, Any], bool]]] = {
    "<": (pc.less, lambda low, high, bound: low < bound),
    ">": (pc.greater, lambda low, high, bound: high > bound),
    "<=": (pc.less_equal, lambda low, high, bound: low <= bound),
    ">=": (pc.greater_equal, lambda low, high, bound: high >= bound),
}


def literal(text: str, column: Column) -> Any | None:
    """Return a contract's literal as a value of the column's type; None for one in doubt.

    It is written as `lakegate.contract.reading.literals` writes it.
    """
    try:
        return _LITERALS.get(column.type.partition("(")[0], _number)(text, column)
    except (ValueError, OverflowError):  # Arrow's errors are ValueErrors, too
        return None


def _number(text: str, column: Column) -> Any | None:
    """Return a number, rounded as a float of its width and exact otherwise."""
    number = pa.scalar(text).cast(arrow_type(column)).as_py()
    return number if isfinite(number) else None


def _decimal(text: str, column: Column) -> Decimal | None:
    number, (precision, after) = Decimal(text), digits(column.type)
    fits = -int(number.as_tuple().exponent) <= after and number.adjusted() < precision - after
    return number if fits else None


def _days(text: str, _: Column) -> int:
    return date.fromisoformat(text).toordinal() - date(1970, 1, 1).toordinal()


def _microseconds(text: str, _: Column) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


_LITERALS: Mapping[str, Callable[[str, Column], Any]] = {
    "string": lambda text, _: text,
    "boolean": lambda text, _: text == "true",
    "decimal": _decimal,
    "date": _days,
    "timestamp": _microseconds,
    "timestamp_ntz": _microseconds,
}


def is_countable(check: Check, column: Column) -> bool:
    """Return if `count` takes this check, one of `OF_ROWS`, on this plain column."""
    rule = check.values
    match check.metric:
        case Metric.NULL:
            return True
        case Metric.MISSING:
            return _are_sure([text for text in rule.missing_values if text is not None], column)
        case Metric.UNDECODED:
            return column.type == "string"
        case Metric.INVALID:
            literals = [*rule.valid_values, *(bound for _, bound in rule.bounds)]
            return _are_sure(literals, column) and _has_only_known(rule, column)
        case _:
            return False


def _are_sure(texts: Sequence[str], column: Column) -> bool:
    return all(literal(text, column) is not None for text in texts)


def _has_only_known(rule: Rule, column: Column) -> bool:
    """Return if a rule consists of parts that `_broken` writes for the column's type."""
    patterns = _patterns(rule)
    lengths = [size for size in (rule.min_length, rule.max_length) if size is not None]
    if (patterns or lengths) and column.type != "string":
        return False
    if rule.bounds and column.type == "boolean":
        return False
    if not all(map(means_the_same, patterns)) or any(size > _LARGEST_SIZE for size in lengths):
        return False
    if rule.multiple_of is not None and not (
        column.type in INTEGERS and re.fullmatch(_STEP, rule.multiple_of, re.ASCII)
    ):
        return False
    sizes = rule.min_items, rule.max_items, rule.min_properties, rule.max_properties
    return sizes == (None,) * 4 and not rule.unique_items and not rule.required_properties


def _patterns(rule: Rule) -> list[str]:
    both = (rule.pattern, PATTERNS.get(rule.format or ""))
    return [pattern for pattern in both if pattern is not None]


def count(check: Check, values: Values) -> int:
    """Return how many rows a check of `OF_ROWS` counts, one that `is_countable`."""
    if check.metric is Metric.NULL:
        return values.nulls
    mask = counted(check, values)
    return 0 if mask is None else trues(mask)


def counted(check: Check, values: Values) -> pa.ChunkedArray | None:
    """Return a mask of the rows that such a check counts, where it is true; None if it has none."""
    masks = list(_counted(check, values))
    return reduce(pc.or_, masks) if masks else None


def _counted(check: Check, values: Values) -> Iterator[pa.ChunkedArray]:
    rule = check.values
    match check.metric:
        case Metric.NULL:
            yield missing(values.array, values.around)
        case Metric.MISSING:
            if texts := [text for text in rule.missing_values if text is not None]:
                yield _is_in(values, texts)
            if None in rule.missing_values:
                yield missing(values.array, values.around)
        case Metric.UNDECODED:
            yield pc.match_substring_regex(values.array, _UNDECODED)
        case _:
            yield from _broken(values, rule)


def _broken(values: Values, rule: Rule) -> Iterator[pa.ChunkedArray]:
    """Yield masks of the values that break a part of the rule; a null is never true."""
    array, statistics = values.array, values.statistics
    if rule.valid_values:
        yield pc.and_(pc.is_valid(array), pc.invert(_is_in(values, rule.valid_values)))
    for pattern in _patterns(rule):
        yield pc.invert(pc.match_substring_regex(array, re2_pattern(pattern)))
    for sign, text in rule.bounds:
        compare, is_outside = _OUTSIDE[sign]
        bound = literal(text, values.column)
        if statistics.low is not None and is_outside(statistics.low, statistics.high, bound):
            yield compare(array, pa.scalar(bound, array.type))
    if rule.multiple_of is not None:
        yield _not_a_multiple(array, int(rule.multiple_of))
    yield from _wrong_length(array, rule)
    if statistics.nans:
        yield pc.is_nan(array)


def _is_in(values: Values, texts: Sequence[str]) -> pa.ChunkedArray:
    array = values.array
    listed = pa.array([literal(text, values.column) for text in texts], array.type)
    if values.column.type in FLOATING:
        array, listed = map(without_negative_zero, (array, listed))
    return pc.is_in(array, value_set=listed)


def _not_a_multiple(array: pa.ChunkedArray, step: int) -> pa.ChunkedArray:
    return pc.not_equal(pc.remainder(array.cast(pa.int64()), pa.scalar(step, pa.int64())), 0)


def _wrong_length(array: pa.ChunkedArray, rule: Rule) -> Iterator[pa.ChunkedArray]:
    if rule.min_length is not None:
        yield pc.less(pc.utf8_length(array), rule.min_length)
    if rule.max_length is not None:
        yield pc.greater(pc.utf8_length(array), rule.max_length)
