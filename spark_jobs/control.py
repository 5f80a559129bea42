"""Control files: what a sender says of a file in another one beside it, against the file's rows."""

import csv
import io
import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import isfinite

from pyspark.sql import functions as F

from lakegate.checks import Check, Metric
from lakegate.contract_thresholds import NONE
from lakegate.errors import Permanent
from lakegate.rules import Control, Rule
from spark_jobs import sql
from spark_jobs.run import Run

_ROWS = "rows"
_CLOSE = Fraction(1, 10**9)  # relative: sums of floats depend on their order


def differing(run: Run, control: Control, text: str) -> tuple[int, str]:
    """How many of a control file's numbers are not those of the file, and which.

    Raises Permanent BAD_CONTROL where it does not tell exactly what it has to.
    """
    told, found = _told(control, text), _found(run, control)
    apart = [name for name in told if not _same(told[name], found[name])]
    hidden = [f"sum({c.name})" for c in run.contract.columns if c.sensitive]
    words = [
        f"{name} is another"
        if name in hidden
        else f"{name} is {_shown(found[name])}, not {told[name]}"
        for name in apart
    ]
    return len(apart), "; ".join(words)


def _told(control: Control, text: str) -> Mapping[str, Decimal]:
    given = _parsed(control, text)
    wanted = [_ROWS, *(f"sum({name})" for name in control.sums)]
    if sorted(given) != sorted(wanted):
        others = len(set(given).difference(wanted))
        raise _bad(f"it must tell {', '.join(wanted)}, all of them, and tells {others} others")
    try:
        return {name: Decimal(str(given[name])) for name in wanted}
    except InvalidOperation:
        raise _bad("what it tells are not all numbers") from None


def _parsed(control: Control, text: str) -> Mapping[str, object]:
    if control.format == "csv":
        lines = [line for line in csv.reader(io.StringIO(text)) if line]
        if len(lines) != 2 or len(lines[0]) != len(lines[1]):
            raise _bad("it must be a header and one line of as many numbers")
        return {name.strip(): value.strip() for name, value in zip(*lines, strict=True)}
    try:
        given = json.loads(text, parse_float=Decimal)
    except ValueError as error:
        raise _bad(f"it is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise _bad("it must be one JSON object")
    return given


def _found(run: Run, control: Control) -> Mapping[str, Decimal | float | None]:
    checks = [Check("", Metric.SUM, (name,), Rule(), NONE) for name in control.sums]
    sums = [F.expr(sql.value(check, run.contract)) for check in checks]
    found = run.rows.agg(*sums).collect()[0] if sums else ()
    named = {f"sum({name})": value for name, value in zip(control.sums, found, strict=True)}
    return {_ROWS: Decimal(run.written), **named}


def _same(told: Decimal, found: Decimal | float | None) -> bool:
    if found is None or not (told.is_finite() and isfinite(found)):
        return False
    if isinstance(found, float):
        return abs(Fraction(found) - Fraction(told)) <= abs(Fraction(told)) * _CLOSE
    return told == found


def _shown(found: Decimal | float | None) -> str:
    return "without a value" if found is None else str(found)


def _bad(reason: str) -> Permanent:
    return Permanent("BAD_CONTROL", f"the control file cannot be used: {reason}")
