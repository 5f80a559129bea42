"""Common bins for two sets of numbers, so that both can be drawn in one chart. Pure.

Times are numbers too: seconds since 1970. Main's values decide the range: values of the other side
far outside are counted in one bin at either end.
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
        days = self.kind is Kind.TIME and self.step >= _DAY
        name = _NAMES[Kind.DAY if days else self.kind]
        starts = (name(self.start + number * self.step) for number in range(self.many))
        return (f"< {name(self.start)}", *starts, f"≥ {name(self.end)}")


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
    step = max(_step(kind, high - low), 4 * math.ulp(max(abs(low), abs(high))))
    start = math.floor(low / step) * step
    return Bins(kind, start, step, math.floor((high - start) / step) + 1)


def _step(kind: Kind, span: float) -> float:
    """Return the narrowest round width that needs few enough bins."""
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
