"""The view of what landed lately."""

from collections.abc import Iterable, Sequence

import streamlit as st

from dashboard import links
from dashboard import overview_pictures as pictures
from dashboard.axes import Span
from dashboard.opening import Opened
from dashboard.overview import Outcome, Overview, Window, bounds, last_alerts, overview
from dashboard.words import ago, code, duration, tables
from functions.brief import Brief

_EVERY_TABLE = "All tables"


def show(opened: Opened) -> None:
    """Show what landed, what came of it, how long it took, and what failed last."""
    world = opened.world
    now = world.now()
    st.header("Overview", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        window = st.segmented_control(
            "What landed in the last", list(Window), default=Window.DAY, required=True
        )
        since, until = bounds(window, now)
        every = list(world.ledger.landed(since, until))
        known = sorted({table for each in every for table in each.tables})
        wanted = st.selectbox("Table", [_EVERY_TABLE, *known], width=260)
    landed = _of(wanted, every)
    told, span = overview(landed, window), Span(since, until, window.step)
    if landed:
        _numbers(told)
        st.altair_chart(pictures.landed(told, span), alt="Files that landed, by time and outcome")
    else:
        _nothing(window)
    left, right = st.columns([3, 2], gap="large")
    waiting = _of(wanted, world.ledger.open_failures())  # while the browser draws the first picture
    with left:
        _alerts(last_alerts(landed, waiting), now)
        _oldest(waiting, now)
    if landed:
        with right:
            _pictures(told, span)


def _of(wanted: str, briefs: Iterable[Brief]) -> list[Brief]:
    return [each for each in briefs if wanted in (_EVERY_TABLE, *each.tables)]


def _nothing(window: Window) -> None:
    with st.container(border=True):
        st.markdown(f":material/inbox: **Nothing landed in the last {window}**")
        st.markdown("Drop a file, or look further back:")
        st.code("lakegate drop FILE --key <namespace>/<table>/<name> --wait", language=None)


def _numbers(told: Overview) -> None:
    with st.container(horizontal=True):
        st.metric("landed", f"{told.landed:,}", width=100)
        for outcome in Outcome:
            if many := told.outcomes.get(outcome, 0):
                st.metric(outcome, f"{many:,}", width=100)
        if told.pace:
            st.metric("median to published", duration(told.pace.median), width=150)
            st.metric("95 of 100 within", duration(told.pace.slow), width=150)


def _pictures(told: Overview, span: Span) -> None:
    st.subheader("By table", anchor=False)
    st.altair_chart(pictures.by_table(told), alt="Files that landed, by table and outcome")
    if told.pace:
        st.subheader("From landing to published", anchor=False)
        st.altair_chart(
            pictures.paces(told, span), alt="Seconds from landing to published, by time"
        )


def _alerts(alerts: Sequence[Brief], now: str) -> None:
    st.subheader("Last alerts", anchor=False)
    if not alerts:
        st.markdown(":material/check_circle: Nothing failed.")
    for each in alerts:
        with st.container(gap=None):
            links.ingestion(each.id, f"{code(each.name)} {each.state}", ":material/error:")
            gone = ", superseded" if each.superseded_by else ""
            gone = ", discarded" if each.discarded else gone
            why = f"{tables(each.tables)}, {each.reason_code}"
            st.text(f"{why}, {ago(each.ended_at, now)}{gone}")


def _oldest(waiting: Sequence[Brief], now: str) -> None:
    if not waiting:
        return
    oldest = waiting[0]
    st.subheader("Oldest that waits for a decision", anchor=False)
    links.ingestion(oldest.id, code(oldest.branch or oldest.name), ":material/hourglass:")
    st.text(f"{tables(oldest.tables)}, landed {ago(oldest.landed_at, now)}")
