"""The pictures of one table."""

from collections.abc import Sequence

import altair as alt

from dashboard import axes, look
from dashboard.axes import Span
from dashboard.table import Entry, Ran
from lakegate.report import Status

_ORDER = [status.value for status in axes.RESULT_COLOURS]


def rows_over_time(entries: Sequence[Entry], now: str) -> alt.LayerChart | alt.FacetChart:
    """How many rows a table had after each of its commits, up to now; `entries` newest first."""
    first, last = entries[-1], entries[0]
    rows = [{"time": e.at, "rows": e.after, "gained": e.gained, "what": e.message} for e in entries]
    before = {"time": first.at, "rows": first.after - first.gained}
    shown = [before, *reversed(rows), {"time": now, "rows": last.after}]
    numbers = alt.Axis(format="~s", tickCount=5, tickMinStep=1)
    base = axes.chart([{"number": number, **row} for number, row in enumerate(shown)]).encode(
        x=axes.time_axis("time", first.at, now),
        y=alt.Y("rows:Q", title="rows", axis=numbers, stack=False),
        tooltip=[axes.time(), axes.number("rows"), axes.number("gained"), "what:N"],
    )
    point = {"color": look.GREEN, "size": 24}
    return alt.layer(
        # With an order Vega takes each row for an area of its own.
        base.mark_area(interpolate="step-after", color=look.GREEN, opacity=0.25),
        base.mark_line(interpolate="step-after", color=look.GREEN, point=point).encode(
            order="number:Q"
        ),
    ).properties(height=240)


def checks_by_day(ran: Sequence[Ran], span: Span) -> alt.Chart:
    """How the checks of a table's runs ended, by day."""
    parts = [
        {"begin": each.day, "result": axes.RESULT_WORDS[Status(each.status)], "many": each.checks}
        for each in sorted(ran, key=lambda each: _ORDER.index(each.status))
    ]
    return (
        axes.bars(parts, "checks", span)
        .encode(
            color=axes.by_result({Status(each.status) for each in ran}),
            tooltip=[axes.time(), "result:N", axes.number("many", "checks")],
        )
        .properties(height=200)
    )
