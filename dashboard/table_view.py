"""The view of one table."""

from collections.abc import Sequence
from datetime import timedelta

import streamlit as st

from dashboard import links
from dashboard import table_pictures as pictures
from dashboard.axes import Span
from dashboard.failing import told
from dashboard.opening import Opened
from dashboard.table import Entry, checks_within, history, ran
from dashboard.words import code, count, harmless, moment, size
from functions.catalog import MAIN
from functions.lake import StoredContract
from functions.world import World
from reading.reader import Reader
from reading.table_state import TableState

_COMMITS, _MORE = 200, 5_000
_SHOWN = 50
_YES = {True: "yes", False: ""}


def show(opened: Opened) -> None:
    """Show the table that the address names, or which there are."""
    name = st.query_params.get("name", "").strip()
    reader = opened.reader(MAIN)
    if not name:
        _ask(reader)
        return
    st.header(code(name), anchor=False)
    state = reader.state(name)
    _numbers(state)
    entries = _rows_over_time(opened.world, name, state.rows)
    columns, contract, commits, checks = st.tabs(["Columns", "Contract", "Commits", "Checks"])
    with columns:
        _columns(state)
    with contract, told():
        _contract(opened.world, name)
    with commits:
        _commits(entries)
    with checks, told():
        _checks(opened, reader, name)


def _ask(reader: Reader) -> None:
    st.header("Tables on main", anchor=False)
    names = reader.names()
    for name in names:
        links.table(name, code(name), ":material/table:")
    if not names:
        st.markdown("There is none yet: the first file that is published makes one.")


def _numbers(state: TableState) -> None:
    with st.container(horizontal=True):
        st.metric("rows", f"{state.rows:,}", width=180)
        st.metric("data files", f"{state.files:,}", width=140)
        st.metric("size", size(state.size), width=140)
        st.metric("columns", f"{len(state.columns):,}", width=140)


def _rows_over_time(world: World, name: str, rows: int) -> tuple[Entry, ...]:
    further = st.session_state.get(f"further {name}", False)
    entries = history(world.catalog.log(), name, rows, _MORE if further else _COMMITS)
    if entries:
        st.altair_chart(
            pictures.rows_over_time(entries, world.now()), alt="Rows of the table over time"
        )
    if not further:
        st.checkbox(
            f"Look further back than main's last {_COMMITS:,} commits", key=f"further {name}"
        )
    return entries


def _columns(state: TableState) -> None:
    shown = [
        {
            "column": c.name,
            "type": c.type,
            "required": "yes" if c.required else "",
            "about": c.about,
        }
        for c in state.columns
    ]
    st.dataframe(harmless(shown), hide_index=True, alt="The table's columns")
    if state.partitioned_by:
        st.text(f"Partitioned by {', '.join(state.partitioned_by)}")
    st.markdown(code(state.location))


def _contract(world: World, name: str) -> None:
    stored = next((s for s in world.lake.contracts() if s.contract.table == name), None)
    if not stored:
        st.text("No contract in force is for this table.")
        return
    _terms(stored)


def _terms(stored: StoredContract) -> None:
    contract = stored.contract
    st.text(f"Keys under {contract.landing_prefix}, told in {contract.channel or 'no channel'}")
    st.markdown(code(f"{stored.key} (version {stored.version})"))
    shown = [
        {
            "check": check.id,
            "columns": ", ".join(check.columns),
            "measured": check.measure,
            "expected": check.expected,
            "severity": check.severity.value,
        }
        for check in contract.checks
    ]
    st.dataframe(harmless(shown), hide_index=True, alt="What the contract asks")


def _commits(entries: Sequence[Entry]) -> None:
    if not entries:
        st.text("None of main's last commits published rows of this table.")
        return
    shown = [
        {
            "when": moment(e.at),
            "what": e.message,
            "rows": f"{e.gained:+,}",
            "rows after": f"{e.after:,}",
            "published anyway by": e.approved_by,
            "commit": e.hash,
        }
        for e in entries[:_SHOWN]
    ]
    st.dataframe(harmless(shown), hide_index=True, alt="Main's commits of this table")
    links.ingestion(entries[0].first, "The newest one's ingestion", ":material/arrow_forward:")


def _checks(opened: Opened, reader: Reader, name: str) -> None:
    """Read from main's table of results, only when it is asked for: it may have many files."""
    if not st.toggle("Read how the checks of the last 30 days ended"):
        return
    span = Span(*checks_within(opened.world.now()), timedelta(days=1))
    with st.spinner("Reading"), reader.records(name, span.since) as results:
        found = tuple(ran(results))
    if not found:
        st.text("No run of the last 30 days is recorded on main yet.")
        return
    st.altair_chart(pictures.checks_by_day(found, span), alt="Checks by day and result")
    st.text(count(sum(each.checks for each in found), "check"))
