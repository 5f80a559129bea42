"""The page of one ingestion."""

from collections.abc import Mapping, Sequence
from shlex import quote

import altair as alt
import streamlit as st

from access.ingestions import outcomes
from access.ingestions.shared_runs import wait_words
from dashboard import actions, charts, formatting, listing
from dashboard.formatting import code, grid
from dashboard.ingestion import Account, account, facts, head, rows, wrong_columns
from dashboard.serve.session import Opened, named
from dashboard.serve.watching import watch
from dashboard.timeline import Step, total
from dashboard.verdict import overruled, verdict
from dashboard.views import ingestions as ingestions_page
from functions.model.ingestion import Ingestion
from functions.model.ingestion_summary import status_text
from functions.model.shown_state import ShownState
from lakegate.audit import causes, failing_rows
from lakegate.audit.report import CheckResult, Status
from lakegate.job.landing import ID_PART
from lakegate.text import count, one_line, visible
from lakegate.times import duration, moment, seconds


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


_OPEN_CHECKS = 3  # whose rows are shown at once


def show(opened: Opened) -> None:
    """Show the ingestion in the address, or the list of all."""
    wanted = st.query_params.get("id", "").strip()
    if not wanted:
        ingestions_page.show(opened)
        return
    known = account(opened.adapters, named(opened, wanted))
    _head(known)
    _under_way(opened, known.ingestion)
    actions.show(opened, known.ingestion)
    _numbers(known)
    _checks(known)
    _way(known)
    with st.expander("Details", expanded=not known.report):
        _facts(facts(known))


def _head(known: Account) -> None:
    one = known.ingestion
    st.title(code(one.name), anchor=False)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(outcomes.state(one), color=listing.colour(ShownState.of(one)))
        for table in one.tables:
            formatting.table(table, code(table), ":material/table:")
        if known.is_comparable:
            formatting.branch(one.id, "Compare with main", ":material/compare_arrows:")
    st.text(visible(" · ".join(head(known))))
    if one.mends:
        label = f"It mends the rejected ingestion {code(one.mends.ingestion[:ID_PART])}"
        formatting.ingestion(one.mends.ingestion, label, ":material/healing:")
    with st.container(border=True):
        st.text(visible(verdict(one)))
        if one.reason:
            st.markdown(code(one.reason.code))
    if words := overruled(one):
        with st.container(border=True):
            st.markdown(":material/gavel: **Published although its audit failed**")
            st.text(visible(words))
    if known.undone:
        with st.container(border=True):
            st.markdown(":material/undo: **Somebody asked to have its rows removed**")
            st.text(visible(known.undone))
    if one.superseded_by:
        label = f"The newer version, {code(one.superseded_by[:ID_PART])}"
        formatting.ingestion(one.superseded_by, label, ":material/update:")


def _numbers(known: Account) -> None:
    one = known.ingestion
    with st.container(horizontal=True):
        st.metric("rows", f"{one.audit.rows:,}", width=140)
        if took := total(one):
            st.metric("Duration", duration(took), width=200)
        if known.report:
            passed = sum(check.status is Status.PASS for check in known.checks)
            st.metric("checks passed", f"{passed:,} of {len(known.checks):,}", width=180)


def _under_way(opened: Opened, one: Ingestion) -> None:
    """Show how far it is while it is in flight, and keep the page up to date."""
    if one.ended:
        return
    adapters = opened.adapters
    wait = wait_words(adapters, one)
    words = f"It {wait}" if wait else f"Running: {status_text(one)}"
    st.text(visible(f"{words}."))
    st.caption(":material/sync: This page keeps itself up to date.")

    def look() -> tuple[object, ...]:
        return adapters.ledger.get(one.id).revision, wait_words(adapters, one)

    watch((one.revision, wait), look)


def _checks(known: Account) -> None:
    st.header("Checks", anchor=False)
    if not known.report:
        st.text(visible(known.no_report))
        return
    if wrong := known.report.wrong_columns:
        grid(wrong_columns(wrong), "Columns: expected, found, perhaps meant", ("found",))
    if not known.checks:
        st.text("No check was asked.")
        return
    for number, check in enumerate((*known.report.untold, *known.report.warned)):
        _unmet(check, known, is_open=number < _OPEN_CHECKS)
    every = f"All {count(len(known.checks), 'check')}"
    with st.expander(every, icon=":material/checklist:", expanded=not known.report.failed):
        grid(rows(known.checks), "Every check, expected and found")


def _unmet(check: CheckResult, known: Account, *, is_open: bool) -> None:
    """Show a check that does not hold on one line; below it some rows, offending cells marked."""
    line = f"{code(check.id)}: {code(causes.finding(vars(check)))}"
    icon = ":material/warning:" if check.status is Status.WARN else ":material/close:"
    with st.expander(line, icon=icon, expanded=is_open):
        if check.samples:
            shown = failing_rows.shown(check.samples)
            grid(shown, f"Some rows that break {one_line(check.id)}", failing_rows.offending(check))
        elif check.columns and known.is_comparable:
            _looked_up(check, known)


def _looked_up(check: CheckResult, known: Account) -> None:
    """Show where to find the rows that the report lacks, as of duplicate keys."""
    one = known.ingestion
    asked = code(f"lakegate inspect {one.id} --check {quote(check.id)}")
    st.markdown(f"The audit noted no rows of it. {asked} looks for them on the branch.")
    if known.report and not known.report.parts:
        formatting.branch(one.id, "Find all such rows", ":material/search:")


def _way(known: Account) -> None:
    st.header("Timeline", anchor=False)
    steps = known.steps
    if len(steps) > 1:
        charts.draw(way(steps), alt="How long each step took")
    shown = [
        {"step": s.name, "at": moment(s.at), "since the step before": duration(s.seconds)}
        for s in steps
    ]
    grid(shown, "The steps and their times")


def _facts(known: Mapping[str, Sequence[str]]) -> None:
    """Show all facts in one element: each element costs the browser time."""
    shown = ("  \n".join([f":gray[{name}]", *map(code, lines)]) for name, lines in known.items())
    st.markdown("\n\n".join(shown))
