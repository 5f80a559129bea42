"""The list of ingestions, to search in."""

import re
from itertools import islice

import streamlit as st

from dashboard import formatting, group_actions, listing
from dashboard.formatting import code
from dashboard.overview import Window, bounds
from dashboard.serve.session import Opened
from dashboard.serve.watching import watch
from dashboard.views.inbox import EVERY_TABLE
from functions.adapters.ledger.ledger import Ledger
from functions.model.ingestion import State
from functions.model.ingestion_summary import IngestionSummary
from functions.model.shown_state import ShownState

_ANY_STATE = "Any state"
_MOST = 200
_ID = re.compile("[0-9a-f]{6,32}")


def show(opened: Opened) -> None:
    """Show the newest ingestions that a search, a state, a table and a time mean."""
    adapters = opened.adapters
    now = adapters.now()
    st.title("Ingestions", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = listing.search("Search file, table, state, cause or id")
        window = st.segmented_control(
            "Landed in the last", list(Window), default=Window.WEEK, required=True
        )
        tables = sorted(stored.contract.table for stored in adapters.lake.contracts(None))
        with listing.filters():
            state = listing.choice("State", [_ANY_STATE, *ShownState], "ingestions state")
            table = listing.choice("Table", [EVERY_TABLE, *tables], "ingestions table")
    landed = adapters.ledger.landed(*bounds(window, now))
    meant = (
        each
        for each in landed
        if state in (_ANY_STATE, ShownState.of(each))
        and table in (EVERY_TABLE, *each.tables)
        and listing.is_meant(text, each)
    )
    with st.spinner("Searching"):
        ingestions = list(islice(meant, _MOST))
    _number(ingestions, window)
    _by_id(text.strip())
    _keep_up(adapters.ledger, ingestions)
    group_actions.tell_last()
    above = st.container()
    selected = listing.show_summaries(ingestions, "ingestions")
    with above:
        group_actions.show_selected(opened, [each.id for each in selected if each.is_open])


def _number(summaries: list[IngestionSummary], window: Window) -> None:
    if not summaries:
        st.markdown(f":material/inbox: **None was found in the last {window}**")
        st.markdown("Search further back, or drop a file:")
        st.code("lakegate drop FILE --key <namespace>/<table>/<name> --wait", language=None)
    elif len(summaries) == _MOST:
        st.text(f"The newest {_MOST:,}: search for fewer to see others.")


def _by_id(text: str) -> None:
    """Link to an ingestion of any age, if the search may be its id or the beginning of it."""
    if _ID.fullmatch(text):
        formatting.ingestion(text, f"The ingestion {code(text)}, of any age", ":material/search:")


def _keep_up(ledger: Ledger, summaries: list[IngestionSummary]) -> None:
    """Keep the list up to date while one of it is in flight."""
    in_flight = {each.id: each.state for each in summaries[: listing.SCREEN] if not each.ended}

    def look() -> dict[str, State]:
        return {each.id: each.state for each in ledger.together(list(in_flight))}

    if in_flight:
        words = listing.burst(summaries) or "Files are in flight"
        st.caption(f":material/sync: {words}: this list keeps itself up to date.")
        watch(in_flight, look)
