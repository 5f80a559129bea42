"""The charts of one table."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from dashboard import charts
from dashboard.charts import Span
from dashboard.table import Entry, Ran
from lakegate.audit.report import Status
from lakegate.text import one_line

_ORDER = [status.value for status in charts.RESULT_COLOURS]
_WORDS = [charts.RESULT_WORDS[status] for status in charts.RESULT_COLOURS]


def rows_over_time(entries: Sequence[Entry], now: str) -> alt.LayerChart | alt.FacetChart:
    """Return the rows after each commit of which they are known; `entries` newest first."""
    known = [(each, each.after) for each in entries if each.after is not None]
    first, after = known[-1]
    rows = [{"time": e.at, "rows": n, "gained": e.gained, "what": e.message} for e, n in known]
    before = {"time": first.at, "rows": after - first.gained}
    shown: list[dict[str, Any]] = [before, *rows[::-1], {"time": now, "rows": rows[0]["rows"]}]
    numbers = alt.Axis(format="~s", tickCount=5, tickMinStep=1)
    base = charts.chart([{"number": number, **row} for number, row in enumerate(shown)]).encode(
        x=charts.time_axis("time", first.at, now),
        y=alt.Y("rows:Q", title="rows", axis=numbers, stack=False),
        tooltip=[charts.time(), charts.number("rows"), charts.number("gained"), "what:N"],
    )
    point = {"color": charts.GREEN, "size": 24}
    return alt.layer(
        # With an order, Vega draws each row as an area of its own.
        base.mark_area(interpolate="step-after", color=charts.GREEN, opacity=0.25),
        base.mark_line(interpolate="step-after", color=charts.GREEN, point=point).encode(
            order="number:Q"
        ),
    ).properties(height=240)


def check_history(ran: Sequence[Ran], span: Span) -> alt.Chart:
    """Return a row for each check, with a mark for each day: its worst result, those that fail up.

    A day's runs of other results are in the mark's text.
    """
    days: dict[tuple[str, str], dict[str, int]] = {}
    for each in sorted(ran, key=lambda each: _ORDER.index(each.status)):
        days.setdefault((each.check, each.day), {})[each.status] = each.runs
    marks = [
        {
            "check": one_line(check),
            "result": charts.RESULT_WORDS[Status(next(iter(runs)))],
            "runs": ", ".join(
                f"{many:,} {charts.RESULT_WORDS[Status(s)]}" for s, many in runs.items()
            ),
            **span.bar(day),
        }
        for (check, day), runs in days.items()
    ]
    worst = sorted(marks, key=lambda mark: _WORDS.index(mark["result"]))
    names = list(dict.fromkeys(mark["check"] for mark in worst))
    return (
        charts.chart(marks)
        .mark_rect(cornerRadius=2)
        .encode(
            x=span.axis("time"),
            x2="end:T",
            y=alt.Y("check:N", sort=names, title=None, axis=alt.Axis(labelLimit=220)),
            color=charts.by_result({Status(next(iter(runs))) for runs in days.values()}),
            tooltip=[charts.time(), "check:N", "runs:N"],
        )
        .properties(height=alt.Step(22))
    )
