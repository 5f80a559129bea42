"""Drift: how far a measure is from what it was in the table's published runs.

The distance is in robust standard deviations: from the median, in units of 1.4826 times the median
absolute deviation (Rousseeuw and Croux 1993, "Alternatives to the Median Absolute Deviation"), so
that one strange run among those of before moves it little.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import fields
from math import inf
from statistics import median

from lakegate.baselines import Baselines
from lakegate.checks import OF_ROWS, Check, Metric
from lakegate.report import Baseline

FEWEST = 7
_CONSISTENT = 1.4826  # makes it the standard deviation where values are normally distributed
_LEAST_SHARE = 0.01


def digest(check: Check) -> str:
    """What tells a check's measure from another: baselines of one do not serve the other.

    Thresholds are not part of it.
    """
    basis = check.basis
    rule = {f.name: getattr(basis.rule, f.name) for f in fields(basis.rule)}
    given = sorted((name, str(value)) for name, value in rule.items() if value)
    measured = (basis.metric.value, basis.columns, basis.where, given)
    return hashlib.sha256(repr(measured).encode()).hexdigest()[:32]


def comparable(check: Check, value: float, rows: int) -> float:
    """A measure as it is compared: counts of some of the rows are shares, in percent."""
    if check.basis.metric not in OF_ROWS:
        return value
    return 100 * value / rows if rows else 0.0


def baseline(check: Check, measured: float, known: Baselines) -> Baseline:
    """What a measure, made comparable, is to be compared with."""
    rule = digest(check)
    values = known.values(check.id, rule)
    if not values:
        return Baseline(rule, measured, 0)
    middle = median(values)
    return Baseline(rule, measured, len(values), middle, median(_distances(values, middle)))


def deviation(check: Check, found: Baseline, rows: int) -> float:
    """How many robust standard deviations a measure is off.

    The unit is never less than one row, where rows are counted, and 1 % of the median, so that
    what always was the same may vary a little.
    """
    middle, mad = found.median or 0.0, found.mad or 0.0
    unit = max(_CONSISTENT * mad, _LEAST_SHARE * abs(middle), _one_row(check, rows))
    distance = abs(found.measured - middle)
    return distance / unit if unit else inf if distance else 0.0


def _one_row(check: Check, rows: int) -> float:
    metric = check.basis.metric
    if metric is Metric.ROWS:
        return 1.0
    return 100 / rows if metric in OF_ROWS and rows else 0.0


def _distances(values: Sequence[float], middle: float) -> list[float]:
    return [abs(value - middle) for value in values]
