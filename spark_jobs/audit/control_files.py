"""Control files: numbers that the sender states in a second file beside the landed one."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import isfinite

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakegate.contract.checks import Check, Metric
from lakegate.contract.columns import quoted
from lakegate.contract.expectations import NONE
from lakegate.contract.rules import Control, Rule
from lakegate.errors import Permanent
from lakegate.text import count
from spark_jobs.audit import check_sql
from spark_jobs.audit.run import Run

_ROWS = "rows"
# Sums of floats depend on their order: by so much of the sum, or of the absolute values' sum.
_CLOSE, _ROUNDED = Fraction(1, 10**9), Fraction(1, 10**12)
# Characters of a stated number, and powers of ten: 1e999999999 as a fraction would fill the memory.
_LONGEST, _HIGHEST_POWER = 400, 400


@dataclass(frozen=True)
class _Number:
    """A number of the file, and the sum of the absolute values that it is the sum of.

    The number is None where it is beyond 38 digits or no number.
    """

    value: Decimal | float | None
    size: float = 0.0

    def is_same(self, stated: Decimal) -> bool:
        """Return whether the sender states this number."""
        if self.value is None or not (stated.is_finite() and isfinite(self.value)):
            return False
        if not isinstance(self.value, float):
            return self.value == stated
        size = Fraction(self.size) if isfinite(self.size) else Fraction(0)
        most = max(abs(Fraction(stated)) * _CLOSE, size * _ROUNDED)
        return abs(Fraction(self.value) - Fraction(stated)) <= most

    def __str__(self) -> str:
        return "without a value" if self.value is None else str(self.value)


def control_differences(run: Run, control: Control, text: str) -> tuple[int, str]:
    """Return how many of a control file's numbers differ from the file's, and which.

    Raises Permanent BAD_CONTROL unless the control file states exactly the numbers of the contract.
    """
    stated, actual = _stated(control, text), _numbers(run, control)
    apart = [name for name in stated if not actual[name].is_same(stated[name])]
    hidden = [f"sum({c.name})" for c in run.contract.columns if c.sensitive]
    words = [
        f"{name} differs" if name in hidden else f"{name} is {actual[name]}, not {stated[name]}"
        for name in apart
    ]
    return len(apart), "; ".join(words)


def _stated(control: Control, text: str) -> Mapping[str, Decimal]:
    given = _parsed_control(control, text)
    wanted = [_ROWS, *(f"sum({name})" for name in control.sums)]
    if sorted(given) != sorted(wanted):
        lacking = [name for name in wanted if name not in given]
        others = len(set(given).difference(wanted))  # which may be a row's values
        told = [f"states {count(others, 'other')}"] if others else []
        told += [f"lacks {', '.join(lacking)}"] if lacking else []
        raise _bad_control(f"it must state exactly {', '.join(wanted)}, but {' and '.join(told)}")
    try:
        return {name: _stated_number(str(given[name])) for name in wanted}
    except InvalidOperation:
        raise _bad_control("a stated value is not a number") from None


def _stated_number(text: str) -> Decimal:
    number = Decimal(text)
    power = number.as_tuple().exponent
    if len(text) > _LONGEST or (isinstance(power, int) and abs(power) > _HIGHEST_POWER):
        raise _bad_control(f"a stated number has more than {_HIGHEST_POWER} digits")
    return number


def _parsed_control(control: Control, text: str) -> Mapping[str, object]:
    if control.format == "csv":
        lines = _csv_lines(text)
        if len(lines) != 2 or len(lines[0]) != len(lines[1]):
            raise _bad_control("it must be a header and one line with as many numbers")
        return _once((name.strip(), value.strip()) for name, value in zip(*lines, strict=True))
    try:
        given = json.loads(text, parse_float=Decimal, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise _bad_control(f"it is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise _bad_control("it must be one JSON object")
    return given


def _csv_lines(text: str) -> list[list[str]]:
    """Return the lines that are not empty, whatever ends them."""
    try:
        return [line for line in csv.reader(io.StringIO(text, newline=None), strict=True) if line]
    except csv.Error as error:
        raise _bad_control(f"it is not CSV: {error}") from error


def _once(stated: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Return the stated values by name. Raises Permanent BAD_CONTROL for one that comes twice."""
    by_name: dict[str, object] = {}
    for name, value in stated:
        if name in by_name:
            told = name if name == _ROWS else "another name"  # which may be a row's value
            raise _bad_control(f"it states {told} twice")
        by_name[name] = value
    return by_name


def _numbers(run: Run, control: Control) -> Mapping[str, _Number]:
    sums = [_sum(run, name).alias(f"sum({name})") for name in control.sums]
    totals = run.rows.agg(*sums).collect()[0].asDict() if sums else {}
    # The sum of no values is 0, as senders state it.
    named = {
        name: _Number(sum_ if many else Decimal(0), size)
        for name, (sum_, many, size) in totals.items()
    }
    return {_ROWS: _Number(Decimal(run.written)), **named}


def _sum(run: Run, name: str) -> Column:
    """Return a column's sum, how many values it is of, and the sum of their absolute values."""
    value = check_sql.value(Check("", Metric.SUM, (name,), Rule(), NONE), run.contract)
    column = quoted(name)
    size = f"coalesce(sum(abs(nanvl(CAST({column} AS DOUBLE), 0))), 0)"
    return F.expr(f"struct({value}, count({column}), {size})")


def _bad_control(reason: str) -> Permanent:
    return Permanent("BAD_CONTROL", f"the control file is invalid: {reason}")
