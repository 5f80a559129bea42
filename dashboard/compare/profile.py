"""Count a column's values with duckdb."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from access.check_sql import quoted
from dashboard.compare.bins import Bins, Spread, bins
from dashboard.compare.figures import Kind, Picture
from lakegate.text import one_line

EXACT_ROWS = 2_000_000  # beyond it, what is different is estimated
_MOST_VALUES = 8
_LONGEST = 200  # characters of a text that is looked at


class Stream(Protocol):
    """Rows of one column, as an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


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
    smallest: pa.Scalar
    largest: pa.Scalar
    nans: int = 0


class Values:
    """One column of one side, in duckdb until the next one replaces it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        """`name` is the side's: the column becomes a table of that name."""
        self._connection = connection
        self._name = quoted(name)
        self._type = pa.null()

    def enter(self, stream: Stream, type_: pa.DataType) -> None:
        """Load a stream of one column of that type."""
        self._type = type_
        self._connection.register("entering", stream)
        self._run(f"CREATE OR REPLACE TEMP TABLE {self._name} AS FROM (FROM entering) t(v)")

    def counted(self) -> Counted:
        """Return rows, nulls, distinct values, the smallest and the largest."""
        real = " FILTER (NOT isnan(v))" if self._floats else ""
        nans = "count(*) FILTER (isnan(v))" if self._floats else "0"
        ((rows,),) = self._run(f"SELECT count(*) FROM {self._name}")
        distinct = "count(DISTINCT v)" if rows <= EXACT_ROWS else "approx_count_distinct(v)"
        found = self._connection.sql(
            f"SELECT count(v) AS present, {distinct} AS many, min(v){real} AS low, "
            f"max(v){real} AS high, {nans} AS nans FROM {self._name}"
        ).to_arrow_table()
        present, many, _, _, nans = (column[0].as_py() for column in found.columns)
        low, high = (found[name].cast(self._type)[0] for name in ("low", "high"))
        return Counted(rows, rows - present, many, rows > EXACT_ROWS, low, high, nans)

    @property
    def present(self) -> int:
        """Return the number of values: rows without a null."""
        ((many,),) = self._run(f"SELECT count(v) FROM {self._name}")
        return int(many)

    def spread(self) -> Spread | None:
        """Return the spread of its finite numbers; None without any."""
        ((low, high, quantiles),) = self._run(
            f"SELECT min(x), max(x), quantile_disc(x, [0.01, 0.99]) FROM {self._numbers} "
            "WHERE isfinite(x)"
        )
        return None if quantiles is None else Spread(low, high, *quantiles)

    def binned(self, bins: Bins) -> tuple[int, ...]:
        """Return the number of values per bin, outer ones at either end, without NaN."""
        place = f"least(floor((x - {bins.start!r}) / {bins.step!r}), {bins.many - 1})"
        found = self._run(
            f"SELECT CASE WHEN x < {bins.start!r} THEN 0 WHEN x >= {bins.end!r} THEN "
            f"{bins.many + 1} ELSE 1 + {place} END, count(*) FROM {self._numbers} "
            "WHERE NOT isnan(x) GROUP BY 1"
        )
        counts = {int(number): many for number, many in found}
        return tuple(counts.get(number, 0) for number in range(bins.many + 2))

    def frequent(self) -> dict[str, int]:
        """Return the most frequent values and their counts, by the first _LONGEST characters."""
        return self._frequent(f"ORDER BY count(*) DESC, 1 LIMIT {_MOST_VALUES}")

    def often(self, texts: list[str]) -> dict[str, int]:
        """Return the count of each of these values."""
        return self._frequent("HAVING list_contains($texts, text)", {"texts": texts})

    def _frequent(self, which: str, given: Mapping[str, Any] | None = None) -> dict[str, int]:
        text = f"left(CAST(v AS VARCHAR), {_LONGEST})"
        sql = f"SELECT {text} AS text, count(*) FROM {self._name} WHERE v IS NOT NULL GROUP BY 1"
        return dict(self._run(f"{sql} {which}", given))

    @property
    def _floats(self) -> bool:
        return bool(pa.types.is_floating(self._type))

    @property
    def _numbers(self) -> str:
        """Return the relation of its values as the numbers `x`: times are seconds since 1970."""
        temporal = pa.types.is_temporal(self._type)
        value = "epoch(v)" if temporal else "CAST(v AS DOUBLE)"
        return f"(SELECT {value} AS x FROM {self._name} WHERE v IS NOT NULL)"

    def _run(self, sql: str, given: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, given).fetchall()


# The chart of a column: both sides' values, counted in the same bins or value by value.

OTHERS = "… all others"


def picture(kind: Kind, file: Values | None, main: Values | None) -> Picture | None:
    """Return the chart of a column; None without values, or if no text repeats."""
    return _binned(kind, file, main) if kind.in_order else _listed(file, main)


def _binned(kind: Kind, file: Values | None, main: Values | None) -> Picture | None:
    spreads = [side.spread() if side else None for side in (file, main)]
    found = bins(kind, *spreads)
    if not found:
        return None
    counts = [side.binned(found) if side else () for side in (file, main)]
    return Picture(kind, found.labels, *map(_shares, counts))


def _listed(file: Values | None, main: Values | None) -> Picture | None:
    frequent = [side.frequent() for side in (file, main) if side]
    texts = list(dict.fromkeys(text for side in frequent for text in side))
    if max((many for side in frequent for many in side.values()), default=0) < 2:
        return None
    sides = [side.often(texts) if side else {} for side in (file, main)]
    totals = [side.present if side else 0 for side in (file, main)]
    shown = [_shown(side, total) for side, total in zip(sides, totals, strict=True)]
    labels = sorted({*shown[0], *shown[1]} - {OTHERS}, key=lambda t: (-_weight(t, shown), t))
    if any(side.get(OTHERS) for side in shown):
        labels.append(OTHERS)
    counts = ([side.get(label, 0) for label in labels] for side in shown)
    return Picture(Kind.WORDS, tuple(labels), *map(_shares, counts))


def _shown(counts: Mapping[str, int], total: int) -> dict[str, int]:
    """Return counts by the displayed text, which two values may share."""
    shown: dict[str, int] = {}
    for text, many in counts.items():
        label = one_line(text)
        shown[label] = shown.get(label, 0) + many
    rest = total - sum(counts.values())
    return {**shown, OTHERS: shown.get(OTHERS, 0) + rest} if rest else shown


def _weight(label: str, sides: Sequence[Mapping[str, int]]) -> float:
    return sum(side.get(label, 0) / max(1, sum(side.values())) for side in sides)


def _shares(counts: Sequence[int]) -> tuple[float, ...]:
    total = sum(counts)
    return tuple(many / total for many in counts) if total else ()
