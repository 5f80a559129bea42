"""Control files: numbers that the sender states in a second file beside the landed one."""

import csv
import io
import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import isfinite

from pyspark.sql import functions as F

from lakegate.contract.checks import Check, Metric
from lakegate.contract.expectations import NONE
from lakegate.contract.rules import Control, Rule
from lakegate.errors import Permanent
from spark_jobs.audit import check_sql
from spark_jobs.audit.run import Run

_ROWS = "rows"
_CLOSE = Fraction(1, 10**9)  # relative: sums of floats depend on their order


def control_differences(run: Run, control: Control, text: str) -> tuple[int, str]:
    """Return how many of a control file's numbers differ from the file's, and which.

    Raises Permanent BAD_CONTROL unless the control file states exactly the numbers of the contract.
    """
    stated, found = _stated(control, text), _found(run, control)
    apart = [name for name in stated if not _same(stated[name], found[name])]
    hidden = [f"sum({c.name})" for c in run.contract.columns if c.sensitive]
    words = [
        f"{name} differs"
        if name in hidden
        else f"{name} is {_shown(found[name])}, not {stated[name]}"
        for name in apart
    ]
    return len(apart), "; ".join(words)


def _stated(control: Control, text: str) -> Mapping[str, Decimal]:
    given = _parsed_control(control, text)
    wanted = [_ROWS, *(f"sum({name})" for name in control.sums)]
    if sorted(given) != sorted(wanted):
        others = len(set(given).difference(wanted))
        raise _bad_control(f"it must state exactly {', '.join(wanted)}, but states {others} others")
    try:
        return {name: Decimal(str(given[name])) for name in wanted}
    except InvalidOperation:
        raise _bad_control("a stated value is not a number") from None


def _parsed_control(control: Control, text: str) -> Mapping[str, object]:
    if control.format == "csv":
        lines = [line for line in csv.reader(io.StringIO(text)) if line]
        if len(lines) != 2 or len(lines[0]) != len(lines[1]):
            raise _bad_control("it must be a header and one line with as many numbers")
        return {name.strip(): value.strip() for name, value in zip(*lines, strict=True)}
    try:
        given = json.loads(text, parse_float=Decimal)
    except ValueError as error:
        raise _bad_control(f"it is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise _bad_control("it must be one JSON object")
    return given


def _found(run: Run, control: Control) -> Mapping[str, Decimal | float | None]:
    checks = [Check("", Metric.SUM, (name,), Rule(), NONE) for name in control.sums]
    sums = [F.expr(check_sql.value(check, run.contract)) for check in checks]
    found = run.rows.agg(*sums).collect()[0] if sums else ()
    named = {f"sum({name})": value for name, value in zip(control.sums, found, strict=True)}
    return {_ROWS: Decimal(run.written), **named}


def _same(stated: Decimal, found: Decimal | float | None) -> bool:
    if found is None or not (stated.is_finite() and isfinite(found)):
        return False
    if isinstance(found, float):
        return abs(Fraction(found) - Fraction(stated)) <= abs(Fraction(stated)) * _CLOSE
    return stated == found


def _shown(found: Decimal | float | None) -> str:
    return "without a value" if found is None else str(found)


def _bad_control(reason: str) -> Permanent:
    return Permanent("BAD_CONTROL", f"the control file is invalid: {reason}")
