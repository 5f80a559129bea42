"""The chart of a column: both sides' values, counted in the same bins or value by value."""

from collections import Counter
from collections.abc import Sequence

import duckdb

from dashboard.compare.bins import Bins, Spread, bins
from dashboard.compare.counting import FILE, MAIN, run
from dashboard.compare.figures import Kind, Picture
from lakegate.text import one_line

OTHERS = "… all others"
_MOST_VALUES = 8
_LONGEST = 200  # characters of a text that is looked at
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
    run(connection, f"CREATE OR REPLACE TEMP VIEW both_sides AS {values}")
    return _listed(connection) if kind is Kind.WORDS else _binned(connection, kind)


def _binned(connection: duckdb.DuckDBPyConnection, kind: Kind) -> Picture | None:
    scale = bins(kind, *map(spreads(connection).get, (FILE, MAIN)))
    if not scale:
        return None
    counts = binned(connection, scale)
    return Picture(kind, scale.labels, _shares(counts[FILE]), _shares(counts[MAIN]))


def spreads(connection: duckdb.DuckDBPyConnection) -> dict[str, Spread]:
    """Return the spread of each side's finite numbers; of none without any."""
    rows = run(
        connection,
        "SELECT side, min(x), max(x), quantile_disc(x, [0.01, 0.99]) FROM both_sides "
        "WHERE isfinite(x) GROUP BY side",
    )
    return {side: Spread(low, high, *inner) for side, low, high, inner in rows}


def binned(connection: duckdb.DuckDBPyConnection, bins: Bins) -> dict[str, list[int]]:
    """Return each side's number of values per bin, outer ones at either end, without NaN."""
    place = f"least(floor((x - {bins.start!r}) / {bins.step!r}), {bins.many - 1})"
    rows = run(
        connection,
        f"SELECT side, CASE WHEN x < {bins.start!r} THEN 0 WHEN x >= {bins.end!r} THEN "
        f"{bins.many + 1} ELSE 1 + {place} END, count(*) FROM both_sides "
        "WHERE NOT isnan(x) GROUP BY ALL",
    )
    counts = {side: [0] * (bins.many + 2) for side in (FILE, MAIN)}
    for side, number, many in rows:
        counts[side][int(number)] = many
    return counts


def _listed(connection: duckdb.DuckDBPyConnection) -> Picture | None:
    """Return the most frequent values of either side, by their first characters."""
    rows = run(connection, _FREQUENT)
    if max((many for _, *each in rows for many in each), default=0) < 2:
        return None
    ((*totals,),) = run(connection, f"SELECT {_BY_SIDE} FROM both_sides")
    sides: tuple[Counter[str], ...] = Counter(), Counter()
    for text, *each in rows:  # two values may be the same text on one line
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
