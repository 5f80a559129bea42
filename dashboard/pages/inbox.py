"""The first page: what needs a decision."""

from collections.abc import Iterable

import streamlit as st

from access.ingestions.find import Wanted, still_waiting
from dashboard import group_actions, listing
from dashboard.serve.session import Opened, watch
from functions.adapters.ledger.ledger import Ledger
from functions.model.ingestion import Ingestion
from functions.model.ingestion_summary import IngestionSummary
from lakegate.text import count, one_line

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
        table = st.selectbox("Table", [EVERY_TABLE, *tables], width=220)
        wanted = Wanted("" if table == EVERY_TABLE else table, limit=_MOST)
        found = still_waiting(ledger, failures, wanted)
        owners = sorted({owner(each) for each in found.ingestions})
        who = st.selectbox("Owner", [_EVERYBODY, *owners], width=220)
    meant = [
        each
        for each in found.ingestions
        if who in (_EVERYBODY, owner(each)) and listing.is_waiting_meant(text, each)
    ]
    _number(meant, len(found.ingestions), more=found.more)
    group_actions.show(opened, meant)
    news = st.container()
    listing.show_waiting(meant, now, "inbox")
    with news:  # looked up while the browser draws the list
        _keep_up(ledger, failures)


def owner(each: Ingestion) -> str:
    """Return its owner, or the channel of its alerts."""
    return one_line(each.terms.owner or each.terms.channel) or "nobody named"


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


def _keep_up(ledger: Ledger, failures: Iterable[IngestionSummary]) -> None:
    """Keep the list up to date while something is in flight."""

    def look() -> tuple[object, ...]:
        return _is_in_flight(ledger), [each.id for each in ledger.open_failures()]

    if _is_in_flight(ledger):
        st.caption(":material/sync: Files are in flight: this list keeps itself up to date.")
        watch((True, [each.id for each in failures]), look)


def _is_in_flight(ledger: Ledger) -> bool:
    return any(True for _ in ledger.unfinished("9999"))
