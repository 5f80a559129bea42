"""The overview's pictures."""

from collections import Counter
from collections.abc import Iterable

import altair as alt

from dashboard import axes, look
from dashboard.axes import Span
from dashboard.overview import Outcome, Overview

# What failed lies at the base of a bar, where also a little is seen and compared.
_COLOURS = {
    Outcome.REJECTED: look.ORANGE,
    Outcome.ERRORED: look.PINK,
    Outcome.WAITING: look.BLUE,
    Outcome.PUBLISHED: look.GREEN,
    Outcome.IGNORED: look.GREY,
}
_MOST_TABLES = 12


def landed(found: Overview, span: Span) -> alt.Chart:
    """What landed, by hour or day, in the colours of its outcome."""
    parts = [
        {"begin": begin, "outcome": outcome, "many": many}
        for (begin, outcome), many in sorted(found.by_time.items(), key=lambda e: _order(e[0][1]))
    ]
    return (
        axes.bars(parts, "files", span)
        .encode(
            color=_by_outcome(outcome for _, outcome in found.by_time),
            tooltip=[axes.time(), "outcome:N", axes.number("many", "files")],
        )
        .properties(height=240)
    )


def by_table(found: Overview) -> alt.Chart:
    """What landed, by table, the busiest tables first."""
    totals: Counter[str] = Counter()
    for (table, _), many in found.by_table.items():
        totals[table] += many
    most = [table for table, _ in totals.most_common(_MOST_TABLES)]
    rows = [
        {"table": _named(table), "outcome": outcome, "files": many, "order": _order(outcome)}
        for (table, outcome), many in found.by_table.items()
        if table in most
    ]
    names, labels = [_named(table) for table in most], alt.Axis(labelLimit=160)
    return (
        axes.chart(rows)
        .mark_bar()
        .encode(
            x=alt.X("files:Q", title="files", axis=axes.whole_numbers()),
            y=alt.Y("table:N", title=None, sort=names, axis=labels),
            color=_by_outcome((outcome for _, outcome in found.by_table), legend=False),
            order="order:Q",
            tooltip=["table:N", "outcome:N", axes.number("files")],
        )
        .properties(height=alt.Step(26))
    )


def paces(found: Overview, span: Span) -> alt.LayerChart | alt.FacetChart:
    """Seconds from landing to published, by hour or day: the median, and up to 95 of 100 files."""
    rows = [
        {**span.bar(begin), "median": pace.median, "slow": pace.slow}
        for begin, pace in sorted(found.paces.items())
    ]
    told = [
        axes.time(),
        alt.Tooltip("median:Q", title="median, s", format=",.1f"),
        alt.Tooltip("slow:Q", title="95 of 100, s", format=",.1f"),
    ]
    seconds = alt.Y("median:Q", title="seconds")
    base = axes.chart(rows).encode(y=seconds, tooltip=told)
    return alt.layer(
        base.mark_bar(color=look.BLUE, opacity=0.35).encode(
            x=span.axis("time"), x2="end:T", y2="slow:Q"
        ),
        base.mark_line(color=look.BLUE, point={"size": 24, "color": look.BLUE}).encode(
            x=span.axis("middle")
        ),
    ).properties(height=180)


def _named(table: str) -> str:
    return table or "no table"


def _by_outcome(found: Iterable[Outcome], *, legend: bool = True) -> alt.Color:
    """The colours of those outcomes that there are."""
    there = set(found)
    shown = [outcome for outcome in _COLOURS if outcome in there]
    scale = alt.Scale(domain=shown, range=[_COLOURS[outcome] for outcome in shown])
    return alt.Color("outcome:N", scale=scale, legend=axes.legend() if legend else None)


def _order(outcome: Outcome) -> int:
    return list(_COLOURS).index(outcome)
