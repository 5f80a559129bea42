"""Count a column's values with duckdb, where each side's column is the column `v` of a table."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, count
from typing import Any

import duckdb
import pyarrow as pa

from dashboard.compare.figures import Kind, Picture
from lakegate.text import one_line

FILE, MAIN = "file", "main"  # the sides' tables
EXACT_ROWS = 2_000_000  # beyond it, what is different is estimated
OTHERS = "… all others"
_MOST_VALUES = 8
_LONGEST = 200  # characters of a text that is looked at


@dataclass(frozen=True)
class Counted:
    """Counts of some rows; `smallest` and `largest` are Arrow's, null without values.

    NaN counts among the `nans` only. `estimated` says that `distinct`, the number of different
    values, is an estimate (HyperLogLog).
    """

    rows: int
    nulls: int
    distinct: int
    estimated: bool
    nans: int
    smallest: pa.Scalar
    largest: pa.Scalar


def enter(connection: duckdb.DuckDBPyConnection, side: str, column: pa.RecordBatchReader) -> None:
    """Load a side's column."""
    connection.register("entering", column)
    _run(connection, f"CREATE OR REPLACE TEMP TABLE {side} AS FROM (FROM entering) t(v)")


def counted(connection: duckdb.DuckDBPyConnection, side: str, type_: pa.DataType) -> Counted:
    """Return rows, nulls, distinct values, the smallest and the largest of a side's column."""
    ((rows,),) = _run(connection, f"SELECT count(*) FROM {side}")
    distinct = "count(DISTINCT v)" if rows <= EXACT_ROWS else "approx_count_distinct(v)"
    nan = "isnan(v)" if pa.types.is_floating(type_) else "false"
    found = connection.sql(
        f"SELECT count(*) FILTER (v IS NULL), {distinct}, count(*) FILTER ({nan}), "
        f"min(v) FILTER (NOT {nan}), max(v) FILTER (NOT {nan}) FROM {side}"
    ).to_arrow_table()
    nulls, many, nans = (column[0].as_py() for column in found.columns[:3])
    ends = (column[0] for column in found.columns[3:])
    return Counted(rows, nulls, many, rows > EXACT_ROWS, nans, *ends)


# Common bins for two sets of numbers, so that both can be drawn in one chart. Times are numbers:
# seconds since 1970. Main's values decide the range: values of the other side far outside are
# counted in one bin at either end.

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


# The chart of a column: both sides' values, counted in the same bins or value by value.

_SHOWN = {
    **dict.fromkeys((Kind.NUMBER, Kind.WHOLE), "CAST(v AS DOUBLE)"),
    **dict.fromkeys((Kind.DAY, Kind.TIME), "epoch(v)"),
    Kind.WORDS: f"left(CAST(v AS VARCHAR), {_LONGEST})",
}


_BY_SIDE = f"""
    count(*) FILTER (side = '{FILE}') AS {FILE}, count(*) FILTER (side = '{MAIN}') AS {MAIN}
"""
_FREQUENT = f"""
    FROM (SELECT x, {_BY_SIDE} FROM both_sides GROUP BY x)
    QUALIFY ({FILE} > 0 AND row_number() OVER (ORDER BY {FILE} DESC, x) <= {_MOST_VALUES})
         OR ({MAIN} > 0 AND row_number() OVER (ORDER BY {MAIN} DESC, x) <= {_MOST_VALUES})
"""


def picture(
    connection: duckdb.DuckDBPyConnection, kind: Kind, sides: Sequence[str]
) -> Picture | None:
    """Return the chart of the sides' column; None without values, or if no text repeats."""
    values = " UNION ALL ".join(
        f"SELECT '{side}' AS side, {_SHOWN[kind]} AS x FROM {side} WHERE v IS NOT NULL"
        for side in sides
    )
    _run(connection, f"CREATE OR REPLACE TEMP VIEW both_sides AS {values}")
    return _listed(connection) if kind is Kind.WORDS else _binned(connection, kind)


def _binned(connection: duckdb.DuckDBPyConnection, kind: Kind) -> Picture | None:
    found = bins(kind, *map(spreads(connection).get, (FILE, MAIN)))
    if not found:
        return None
    counts = binned(connection, found)
    return Picture(kind, found.labels, _shares(counts[FILE]), _shares(counts[MAIN]))


def spreads(connection: duckdb.DuckDBPyConnection) -> dict[str, Spread]:
    """Return the spread of each side's finite numbers; of none without any."""
    found = _run(
        connection,
        "SELECT side, min(x), max(x), quantile_disc(x, [0.01, 0.99]) FROM both_sides "
        "WHERE isfinite(x) GROUP BY side",
    )
    return {side: Spread(low, high, *inner) for side, low, high, inner in found}


def binned(connection: duckdb.DuckDBPyConnection, bins: Bins) -> dict[str, list[int]]:
    """Return each side's number of values per bin, outer ones at either end, without NaN."""
    place = f"least(floor((x - {bins.start!r}) / {bins.step!r}), {bins.many - 1})"
    found = _run(
        connection,
        f"SELECT side, CASE WHEN x < {bins.start!r} THEN 0 WHEN x >= {bins.end!r} THEN "
        f"{bins.many + 1} ELSE 1 + {place} END, count(*) FROM both_sides "
        "WHERE NOT isnan(x) GROUP BY ALL",
    )
    counts = {side: [0] * (bins.many + 2) for side in (FILE, MAIN)}
    for side, number, many in found:
        counts[side][int(number)] = many
    return counts


def _listed(connection: duckdb.DuckDBPyConnection) -> Picture | None:
    """Return the most frequent values of either side, by their first characters."""
    found = _run(connection, _FREQUENT)
    if max((many for _, *each in found for many in each), default=0) < 2:
        return None
    ((*totals,),) = _run(connection, f"SELECT {_BY_SIDE} FROM both_sides")
    sides: tuple[Counter[str], ...] = Counter(), Counter()
    for text, *each in found:  # two values may be the same text on one line
        for side, many in zip(sides, each, strict=True):
            side[one_line(text)] += many
    for side, total in zip(sides, totals, strict=True):
        side[OTHERS] += total - side.total()

    def place(label: str) -> tuple[float, str]:
        return -sum(side[label] / max(1, side.total()) for side in sides), label

    labels = sorted({*sides[0], *sides[1]} - {OTHERS}, key=place)
    if any(side[OTHERS] for side in sides):
        labels.append(OTHERS)
    file, main = (_shares([side[label] for label in labels]) for side in sides)
    return Picture(Kind.WORDS, tuple(labels), file, main)


def _shares(counts: Sequence[int]) -> tuple[float, ...]:
    total = sum(counts)
    return tuple(many / total for many in counts) if total else ()


def _run(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()
