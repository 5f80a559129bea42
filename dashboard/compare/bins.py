"""Common bins for two sets of numbers, so that both can be drawn in one chart.

Times are numbers: seconds since 1970. Main's values decide the range: values of the other side far
outside are counted in one bin at either end.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, count

from dashboard.compare.figures import Kind

_MOST_BINS = 24
_MANY_SPANS = 4
_DAY = 86_400
_STEPS_OF_TIME = (
    *(1, 5, 15, 30, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600),
    *(_DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY, 91 * _DAY, 182 * _DAY, 365 * _DAY),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Spread:
    """The spread of finite numbers: smallest, largest, and the bounds of the middle 98 %."""

    smallest: float
    largest: float
    low: float
    high: float

    @property
    def bulk(self) -> tuple[float, float]:
        """Return the range of the numbers, without outliers."""
        inner = self.high - self.low
        if inner > 0 and self.largest - self.smallest > _MANY_SPANS * inner:
            return self.low, self.high
        return self.smallest, self.largest


@dataclass(frozen=True)
class Bins:
    """`many` bins of the width `step` from `start` on, and one at either end for the rest."""

    kind: Kind
    start: float
    step: float
    many: int

    @property
    def end(self) -> float:
        """Return the end of the last bin, exclusive."""
        return self.start + self.many * self.step

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the label of each bin, from below the first to above the last: its start."""
        starts = (self._label(self.start + number * self.step) for number in range(self.many))
        return (f"< {self._label(self.start)}", *starts, f"≥ {self._label(self.end)}")

    def _label(self, value: float) -> str:
        if self.kind is Kind.NUMBER and not (value.is_integer() and abs(value) >= 1e6):
            return f"{value:,.6g}"
        if self.kind in (Kind.NUMBER, Kind.WHOLE):
            return f"{value:,.0f}"
        try:
            moment = _EPOCH + timedelta(seconds=value)
        except OverflowError:
            return f"year {1970 + value / (365.2425 * _DAY):.0f}"
        if self.kind is Kind.DAY or self.step >= _DAY:
            return f"{moment:%Y-%m-%d}"
        return f"{moment:%Y-%m-%d %H:%M:%S}".removesuffix(":00")


def bins(kind: Kind, file: Spread | None, main: Spread | None) -> Bins | None:
    """Return bins for both sides; None without a finite number.

    They cover main's range, and up to as much again on either side for the file's values.
    """
    leading = main or file
    if not leading:
        return None
    low, high = leading.bulk
    if file:
        width = high - low or 1
        low = max(min(low, file.bulk[0]), low - width)
        high = min(max(high, file.bulk[1]), high + width)
    if not math.isfinite(high - low):
        return None
    step = next(step for step in _steps(kind, high - low) if (high - low) / step < _MOST_BINS)
    step = max(step, 4 * math.ulp(max(abs(low), abs(high))))
    start = math.floor(low / step) * step
    return Bins(kind, start, step, math.floor((high - start) / step) + 1)


def _steps(kind: Kind, span: float) -> Iterator[float]:
    """Return round widths, the narrowest first."""
    if kind in (Kind.DAY, Kind.TIME):
        years = (365 * _DAY * 10**power for power in count(1))
        steps = chain(_STEPS_OF_TIME, years)
        return (step for step in steps if kind is Kind.TIME or step >= _DAY)
    power = math.floor(math.log10(span / _MOST_BINS)) if span else 0
    powers = count(max(0, power) if kind is Kind.WHOLE else power)
    return (digit * 10.0**power for power in powers for digit in (1, 2, 5))
