"""The page of recent files."""

from collections import Counter

import altair as alt
import streamlit as st

from access.ingestions.shared_runs import load
from dashboard import charts, listing
from dashboard.charts import Span
from dashboard.formatting import ago, code
from dashboard.overview import Outcome, Overview, Window, bounds, overview
from dashboard.serve.session import Opened
from dashboard.views.inbox import EVERY_TABLE
from functions.adapters.all import Adapters
from lakegate.times import duration, moment

# Failures lie at the base of a bar, where small numbers are visible and comparable.
_COLOURS = {
    Outcome.REJECTED: charts.ORANGE,
    Outcome.ERRORED: charts.PINK,
    Outcome.WAITING: charts.BLUE,
    Outcome.PUBLISHED: charts.GREEN,
    Outcome.IGNORED: charts.GREY,
    Outcome.DISCARDED: charts.BROWN,
    Outcome.SUPERSEDED: charts.SLATE,
}
_MOST_TABLES, _NO_TABLE = 12, "no table"


def landed_chart(files: Overview, span: Span) -> alt.Chart:
    """Return the files by hour or day, in the colours of their outcomes."""
    parts = [
        {"begin": begin, "outcome": outcome, "many": many}
        for (begin, outcome), many in sorted(files.by_time.items(), key=lambda e: _order(e[0][1]))
    ]
    return (
        charts.bars(parts, "files", span)
        .encode(
            color=charts.colour("outcome", _COLOURS, files.outcomes),
            tooltip=[charts.time(), "outcome:N", charts.number("many", "files")],
        )
        .properties(height=240)
    )


def by_table(files: Overview) -> alt.Chart:
    """Return the files by table, the busiest tables first."""
    totals: Counter[str] = Counter()
    for (table, _), many in files.by_table.items():
        totals[table] += many
    most = [table for table, _ in totals.most_common(_MOST_TABLES)]
    rows = [
        {"table": table or _NO_TABLE, "outcome": outcome, "files": many, "order": _order(outcome)}
        for (table, outcome), many in files.by_table.items()
        if table in most
    ]
    names, labels = [table or _NO_TABLE for table in most], alt.Axis(labelLimit=160)
    return (
        charts.chart(rows)
        .mark_bar()
        .encode(
            x=alt.X("files:Q", title="files", axis=charts.whole_numbers()),
            y=alt.Y("table:N", title=None, sort=names, axis=labels),
            color=charts.colour("outcome", _COLOURS, files.outcomes, legend=False),
            order="order:Q",
            tooltip=["table:N", "outcome:N", charts.number("files")],
        )
        .properties(height=alt.Step(26))
    )


def paces(files: Overview, span: Span) -> alt.LayerChart | alt.FacetChart:
    """Return seconds from landing to publishing, by hour or day: median and 95th percentile."""
    rows = [
        {**span.bar(begin), "median": pace.median, "slow": pace.slow}
        for begin, pace in sorted(files.paces.items())
    ]
    figures = [
        charts.time(),
        alt.Tooltip("median:Q", title="median, s", format=",.1f"),
        alt.Tooltip("slow:Q", title="p95, s", format=",.1f"),
    ]
    seconds = alt.Y("median:Q", title="seconds")
    base = charts.chart(rows).encode(y=seconds, tooltip=figures)
    return alt.layer(
        base.mark_bar(color=charts.BLUE, opacity=0.35).encode(
            x=span.axis("time"), x2="end:T", y2="slow:Q"
        ),
        base.mark_line(color=charts.BLUE, point={"size": 24, "color": charts.BLUE}).encode(
            x=span.axis("middle")
        ),
    ).properties(height=180)


def _order(outcome: Outcome) -> int:
    return list(_COLOURS).index(outcome)


def show(opened: Opened) -> None:
    """Show recent files, their outcomes and durations, and overdue tables."""
    adapters = opened.adapters
    now = adapters.now()
    st.title("Overview", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        window = st.segmented_control(
            "Files of the last", list(Window), default=Window.DAY, required=True
        )
        since, until = bounds(window, now)
        every = list(adapters.ledger.landed(since, until))
        known = sorted({table for each in every for table in each.tables})
        wanted = listing.choice("Table", [EVERY_TABLE, *known], "overview table")

    landed = [each for each in every if wanted in (EVERY_TABLE, *each.tables)]
    figures, span = overview(landed, window), Span(since, until, window.step)
    if landed:
        _numbers(figures)
        _shared_runs(adapters, figures)
        charts.draw(landed_chart(figures, span), alt="Files that landed, by time and outcome")
    else:
        _nothing(window)
    _overdue(adapters, wanted, now)
    if landed:
        _pictures(figures, span)


def _nothing(window: Window) -> None:
    with st.container(border=True):
        st.markdown(f":material/inbox: **Nothing landed in the last {window}**")
        st.markdown("Drop a file, or look further back:")
        st.code("lakegate drop FILE --key <namespace>/<table>/<name> --wait", language=None)


def _numbers(figures: Overview) -> None:
    with st.container(horizontal=True):
        st.metric("landed", f"{figures.landed:,}", width=100)
        for outcome in Outcome:
            if many := figures.outcomes.get(outcome, 0):
                st.metric(outcome, f"{many:,}", width=100)
        if figures.pace:
            st.metric("median to main", duration(figures.pace.median), width=150)
            st.metric("p95", duration(figures.pace.slow), width=150)


def _shared_runs(adapters: Adapters, figures: Overview) -> None:
    """Show how many files, of all tables, wait for job runs and why, if these may be some."""
    if figures.outcomes.get(Outcome.WAITING) and (words := load(adapters)):
        st.text(f"Job runs: {words}.")


def _overdue(adapters: Adapters, wanted: str, now: str) -> None:
    """Show the tables whose next file is overdue by their contracts."""
    for table, since in adapters.ledger.freshness().since().items():
        if wanted in (EVERY_TABLE, table):
            words = f"{code(table)} got no file since {moment(since)}, {ago(since, now)}."
            st.markdown(f":material/hourglass_disabled: **Overdue**: {words}")


def _pictures(figures: Overview, span: Span) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        st.header("By table", anchor=False)
        charts.draw(by_table(figures), alt="Files that landed, by table and outcome")
    if figures.pace:
        with right:
            st.header("From landing to published", anchor=False)
            charts.draw(paces(figures, span), alt="Seconds from landing to published, by time")
