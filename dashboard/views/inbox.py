"""The first page: what needs a decision."""

from collections.abc import Iterable

import streamlit as st

from access.ingestions.find import Wanted, still_waiting
from dashboard import group_actions, listing
from dashboard.overview import Window, bounds
from dashboard.serve.session import Opened
from dashboard.serve.watching import watch
from functions.adapters.ledger.ledger import Ledger
from functions.model.ingestion import Ingestion
from functions.model.ingestion_summary import IngestionSummary
from lakegate.text import count

EVERY_TABLE, _EVERYBODY = "All tables", "Everybody"
_MOST = 200  # are read, and searched


def show(opened: Opened) -> None:
    """Show the files that need a decision, oldest first, and keep the list up to date."""
    ledger, now = opened.adapters.ledger, opened.adapters.now()
    st.title("What needs a decision", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = listing.search("Search file, table, cause or owner")
        failures = list(ledger.open_failures())
        tables = sorted({table for each in failures for table in each.tables})
        with listing.filters():
            table = listing.choice("Table", [EVERY_TABLE, *tables], "inbox table")
            wanted = Wanted("" if table == EVERY_TABLE else table, limit=_MOST)
            matches = still_waiting(ledger, failures, wanted)
            owners = sorted({listing.owner(each) for each in matches.ingestions})
            who = listing.choice("Owner", [_EVERYBODY, *owners], "inbox owner")
    meant = [
        each
        for each in matches.ingestions
        if who in (_EVERYBODY, listing.owner(each)) and listing.is_waiting_meant(text, each)
    ]
    _number(meant, len(matches.ingestions), more=matches.more)
    group_actions.tell_last()
    group_actions.show_causes(opened, meant)
    news, above = st.container(), st.container()
    selected = listing.show_waiting(meant, "inbox")
    with above:
        group_actions.show_selected(opened, [each.id for each in selected])
    with news:  # looked up while the browser draws the list
        _keep_up(ledger, failures, now)


def _number(meant: Iterable[Ingestion], every: int, *, more: bool) -> None:
    """Say how many there are."""
    many = sum(1 for _ in meant)
    if not every:
        st.markdown(":material/check_circle: **Nothing waits for a decision**")
        st.markdown("A file whose audit fails keeps its branch, and is listed here.")
        return
    of = f" of {every:,}" if many < every else ""
    words = f"{count(many, 'file')}{of}, oldest first."
    if more:
        words += f" Only the oldest {_MOST:,} are searched: choose a table for others."
    st.text(words)


def _keep_up(ledger: Ledger, failures: Iterable[IngestionSummary], now: str) -> None:
    """Keep the list up to date while something is in flight, and say how far that is."""

    def look() -> tuple[object, ...]:
        return _in_flight(ledger, now), [each.id for each in ledger.open_failures()]

    if words := _in_flight(ledger, now):
        st.caption(f":material/sync: {words}: this list keeps itself up to date.")
        watch((words, [each.id for each in failures]), look)


def _in_flight(ledger: Ledger, now: str) -> str:
    """Return what is in flight, "" if nothing is."""
    if not any(True for _ in ledger.unfinished("9999")):
        return ""
    return listing.burst(ledger.landed(*bounds(Window.DAY, now))) or "Files are in flight"
