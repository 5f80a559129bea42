"""The page of one ingestion."""

from collections import Counter
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any

import altair as alt
import streamlit as st

from access import outcomes
from access.deployment import identified
from access.outcomes import waits
from access.shared_runs import load
from dashboard import actions, charts, formatting
from dashboard.formatting import code, count, grid, moment
from dashboard.ingestion import Account, Step, account, facts, rows, sample_rows, total
from dashboard.overview import Window, bounds
from dashboard.session import Opened
from functions.model.ingestion import Ingestion
from functions.model.ingestion_summary import status_text
from functions.model.shown_state import ShownState, state_words
from lakegate.landing import ID_PART
from lakegate.report import CheckResult, Status
from lakegate.text import visible
from lakegate.times import duration, seconds

# The charts of one ingestion.


def checks(results: Sequence[CheckResult]) -> alt.Chart:
    """Return the number of checks by status, as one bar."""
    many = Counter(check.status for check in results)
    rows = [
        {"result": charts.RESULT_WORDS[status], "checks": many[status], "order": number}
        for number, status in enumerate(charts.RESULT_COLOURS)
        if many[status]
    ]
    return (
        charts.chart(rows)
        .mark_bar(height=18)
        .encode(
            x=alt.X("checks:Q", stack="normalize", axis=None),
            color=charts.by_result(many),
            order="order:Q",
            tooltip=["result:N", charts.number("checks")],
        )
        .properties(height=84)
    )


def way(steps: Sequence[Step]) -> alt.Chart:
    """Return the phases between the steps, one below the other, as long as each took."""
    rows = [
        {
            "phase": step.phase,
            "from": seconds(steps[0].at, step.began),
            "to": seconds(steps[0].at, step.at),
            "took": duration(step.seconds),
        }
        for step in steps[1:]
    ]
    order = [step.phase for step in steps[1:]]
    return (
        charts.chart(rows)
        .mark_bar(color=charts.BLUE, cornerRadius=2)
        .encode(
            x=alt.X("from:Q", title="seconds since it landed", axis=alt.Axis(tickCount=6)),
            x2="to:Q",
            y=alt.Y("phase:N", sort=order, title=None, axis=alt.Axis(labelLimit=140)),
            tooltip=["phase:N", alt.Tooltip("took:N")],
        )
        .properties(height=alt.Step(24))
    )


_COLOURS: Mapping[ShownState, Any] = {
    ShownState.PUBLISHED: "green",
    ShownState.REJECTED: "orange",
    ShownState.ERRORED: "red",
    ShownState.DISCARDED: "gray",
    ShownState.SUPERSEDED: "gray",
}
_RECENT = 10


def show(opened: Opened) -> None:
    """Show the ingestion in the address, or ask for one."""
    wanted = st.query_params.get("id", "").strip()
    if not wanted:
        _ask(opened)
        return
    known = account(opened.adapters, identified(opened.adapters.ledger, wanted))
    _head(known)
    _under_way(opened, known.ingestion)
    actions.show(opened, known.ingestion)
    _checks(known)
    _way(known)
    with st.expander("Details", expanded=not known.report):
        _facts(facts(known))


def _ask(opened: Opened) -> None:
    st.header("Ingestion", anchor=False)
    wanted = st.text_input("An ingestion's id, or its beginning", placeholder="3f9c2ab17d04")
    if wanted:
        formatting.ingestion(wanted.strip(), f"Show {code(wanted.strip())}", ":material/search:")
    now = opened.adapters.now()
    found = opened.adapters.ledger.landed(*bounds(Window.WEEK, now))
    recent = [brief for brief, _ in zip(found, range(_RECENT), strict=False)]
    if not recent:
        st.markdown("Nothing landed in the last seven days. `lakegate drop FILE` drops a file.")
        return
    st.subheader("Landed last", anchor=False)
    for brief in recent:
        formatting.ingestion(brief.id, f"{code(brief.name)} {state_words(brief)}")


def _head(known: Account) -> None:
    one = known.ingestion
    st.header(code(one.name), anchor=False)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(outcomes.state(one), color=_COLOURS.get(ShownState.of(one), "blue"))
        for table in one.tables:
            formatting.table(table, code(table), ":material/table:")
        if known.is_comparable:
            formatting.branch(one.id, "Compare with main", ":material/compare_arrows:")
    if one.reason:
        with st.container(border=True):
            st.text(visible(one.reason.message))
            st.markdown(code(one.reason.code))
    if one.superseded_by:
        named = code(one.superseded_by[:ID_PART])
        words = f"A newer version of it is published, as {named}: nothing is left to decide."
        formatting.ingestion(one.superseded_by, words, ":material/update:")
    with st.container(horizontal=True):
        st.metric("rows", f"{one.rows:,}", width=140)
        if took := total(one):
            st.metric("Duration", duration(took), width=200)
        if known.report:
            passed = sum(check.status is Status.PASS for check in known.checks)
            st.metric("checks passed", f"{passed:,} of {len(known.checks):,}", width=180)


def _under_way(opened: Opened, one: Ingestion) -> None:
    if not one.ended:
        waiting = one.awaits_shared_run
        words = f"It {waits(load(opened.adapters))}" if waiting else f"Running: {status_text(one)}"
        st.text(visible(f"{words}."))
        st.button("Reload", icon=":material/refresh:", help="Look again how far it is")


def _checks(known: Account) -> None:
    st.subheader("Checks", anchor=False)
    if not known.report:
        st.text(visible(known.no_report))
        return
    if not known.checks:
        st.text("No check was asked.")
        return
    st.altair_chart(checks(known.checks), alt="Checks by result")
    for check in known.report.untold:
        _failed(check, known)
    with st.expander(f"All {count(len(known.checks), 'check')}", expanded=not known.report.failed):
        grid(rows(known.checks), "Every check, expected and found")


def _failed(check: CheckResult, known: Account) -> None:
    with st.container(border=True):
        st.markdown(f":material/close: **{code(check.id)}**")
        formatting.result(check)
        if check.samples:
            st.caption("Some of its rows")
            grid(sample_rows(check.samples), "Rows")
        elif check.columns and known.is_comparable:
            _looked_up(check, known)


def _looked_up(check: CheckResult, known: Account) -> None:
    """Show where to find the rows that the report lacks, as of duplicate keys."""
    one = known.ingestion
    asked = code(f"lakegate inspect {one.id} --check {quote(check.id)}")
    st.caption(f"The audit noted no rows of it. {asked} looks for them on the branch.")
    if known.report and not known.report.parts:
        formatting.branch(one.id, "Find all such rows", ":material/search:")


def _way(known: Account) -> None:
    st.subheader("Timeline", anchor=False)
    steps = known.steps
    if len(steps) > 1:
        st.altair_chart(way(steps), alt="How long each step took")
    shown = [
        {"step": s.name, "at": moment(s.at), "since the step before": duration(s.seconds)}
        for s in steps
    ]
    grid(shown, "The steps and their times")


def _facts(known: Mapping[str, Sequence[str]]) -> None:
    """Show all facts in one element: each element costs the browser time."""
    shown = ("  \n".join([f":gray[{name}]", *map(code, lines)]) for name, lines in known.items())
    st.markdown("\n\n".join(shown))
