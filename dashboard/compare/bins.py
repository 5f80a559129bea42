"""Bins that two sets of numbers are counted in, so that one can be laid upon the other. Pure.

Times are numbers too: seconds since 1970. Main says which range is looked at closely: what the
other side has far beyond it is counted in one bin at either end, and does not squeeze the rest.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dashboard.compare.figures import Kind

_MOST = 24
_MANY_SPANS = 4
_DAY = 86_400
_STEPS_OF_TIME = (
    *(1, 5, 15, 30, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600),
    *(_DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY, 91 * _DAY, 182 * _DAY, 365 * _DAY),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Spread:
    """How finite numbers spread: the smallest, the largest, and the two that 98 % lie between."""

    smallest: float
    largest: float
    low: float
    high: float

    @property
    def bulk(self) -> tuple[float, float]:
        """Where the numbers lie; without the outermost where these are far out."""
        inner = self.high - self.low
        if inner > 0 and self.largest - self.smallest > _MANY_SPANS * inner:
            return self.low, self.high
        return self.smallest, self.largest


@dataclass(frozen=True)
class Bins:
    """`many` bins of the width `step` from `start` on, and one at either end for what is beyond."""

    kind: Kind
    start: float
    step: float
    many: int

    @property
    def end(self) -> float:
        """Where the last one ends, which is not in it."""
        return self.start + self.many * self.step

    @property
    def labels(self) -> tuple[str, ...]:
        """What each is called, from below the first to beyond the last: by where it begins."""
        days = self.kind is Kind.TIME and self.step >= _DAY
        name = _NAMES[Kind.DAY if days else self.kind]
        starts = (name(self.start + number * self.step) for number in range(self.many))
        return (f"< {name(self.start)}", *starts, f"≥ {name(self.end)}")


def bins(kind: Kind, file: Spread | None, main: Spread | None) -> Bins | None:
    """Bins for both sides; None where neither has a finite number.

    They cover main's bulk, and as much again to either side as far as the file's reaches.
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
    step = max(_step(kind, high - low), 4 * math.ulp(max(abs(low), abs(high))))
    start = math.floor(low / step) * step
    return Bins(kind, start, step, math.floor((high - start) / step) + 1)


def _step(kind: Kind, span: float) -> float:
    """The narrowest width, of those that people count in, that takes few enough bins."""
    return next(step for step in _steps(kind, span) if span / step < _MOST)


def _steps(kind: Kind, span: float) -> Iterator[float]:
    if kind is Kind.DAY:
        yield from (step for step in _STEPS_OF_TIME if step >= _DAY)
    if kind is Kind.TIME:
        yield from _STEPS_OF_TIME
    if kind in (Kind.DAY, Kind.TIME):
        yield from (365 * _DAY * 10**power for power in range(1, 12))
    smallest = 0 if kind is Kind.WHOLE or not span else math.floor(math.log10(span / _MOST))
    power = max(0, smallest) if kind is Kind.WHOLE else smallest
    while True:
        yield from (digit * 10.0**power for digit in (1, 2, 5))
        power += 1


def _number(value: float) -> str:
    return f"{value:,.6g}" if abs(value) < 1e6 or not value.is_integer() else f"{value:,.0f}"


def _moment(value: float) -> datetime | None:
    try:
        return _EPOCH + timedelta(seconds=value)
    except OverflowError:
        return None


def _day(value: float) -> str:
    moment = _moment(value)
    return f"{moment:%Y-%m-%d}" if moment else _year(value)


def _time(value: float) -> str:
    moment = _moment(value)
    return f"{moment:%Y-%m-%d %H:%M:%S}".removesuffix(":00") if moment else _year(value)


def _year(value: float) -> str:
    return f"year {1970 + value / (365.2425 * _DAY):.0f}"


_NAMES: dict[Kind, Callable[[float], str]] = {
    Kind.NUMBER: _number,
    Kind.WHOLE: lambda value: f"{value:,.0f}",
    Kind.DAY: _day,
    Kind.TIME: _time,
}
