"""The view of what landed lately."""

from collections.abc import Sequence

import streamlit as st

from dashboard import links
from dashboard import overview_pictures as pictures
from dashboard.axes import Span
from dashboard.opening import Opened
from dashboard.overview import Outcome, Overview, Window, bounds, overview
from dashboard.words import ago, code, duration
from functions.brief import Brief
from functions.world import World

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
        found = list(world.ledger.landed(since, until))
        tables = sorted({brief.table for brief in found if brief.table})
        wanted = st.selectbox("Table", [_EVERY_TABLE, *tables], width=260)
    if not found:
        _nothing(window)
        return
    asked = [each for each in found if wanted in (_EVERY_TABLE, each.table)]
    told, span = overview(asked, window), Span(since, until, window.step)
    _numbers(told)
    st.altair_chart(pictures.landed(told, span), alt="Files that landed, by time and outcome")
    left, right = st.columns([3, 2], gap="large")
    with left:
        _alerts(told.alerts, now)
        _oldest(world, now)
    with right:
        _pictures(told, span)


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
            gone = ", discarded" if each.discarded else ""
            why = f"{each.table or 'no table'}, {each.reason_code}"
            st.text(f"{why}, {ago(each.ended_at, now)}{gone}")


def _oldest(world: World, now: str) -> None:
    oldest = next(world.ledger.open_failures(), None)
    if not oldest:
        return
    st.subheader("Oldest that waits for a decision", anchor=False)
    links.ingestion(oldest.id, code(oldest.branch or oldest.name), ":material/hourglass:")
    st.text(f"{oldest.table or 'no table'}, landed {ago(oldest.landed_at, now)}")
