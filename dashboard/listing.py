"""Lists of ingestions: a link and a line for each, the first ones at once."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import streamlit as st

from dashboard import formatting
from dashboard.formatting import ago, code, tables
from functions.model.ingestion import Ingestion
from functions.model.ingestion_summary import IngestionSummary
from functions.model.shown_state import ShownState, state_words
from lakegate.text import count, one_line, visible
from lakegate.times import duration, seconds

AT_ONCE = 25
_CAUSE = 160
_ICONS = {
    ShownState.PUBLISHED: ":material/check_circle:",
    ShownState.REJECTED: ":material/error:",
    ShownState.ERRORED: ":material/warning:",
    ShownState.IGNORED: ":material/block:",
    ShownState.DISCARDED: ":material/delete:",
    ShownState.SUPERSEDED: ":material/update:",
}
_IN_FLIGHT = ":material/sync:"
_Listed = TypeVar("_Listed", Ingestion, IngestionSummary)


def search(label: str) -> str:
    """Show a field to search in, and return its text; it is looked for while one types."""
    return str(st.text_input(label, type="search", live=True, width=340))


def matches(text: str, *fields: str) -> bool:
    """Return if every word of a search is somewhere in the fields, in any case."""
    known = "\n".join(fields).lower()
    return all(word in known for word in text.lower().split())


def is_meant(text: str, each: IngestionSummary) -> bool:
    """Return if a search means an ingestion: by file, table, state, code of its reason, or id."""
    return matches(text, *_names(each))


def is_waiting_meant(text: str, each: Ingestion) -> bool:
    """Return if a search means an ingestion that waits: by key, cause and owner too."""
    cause = each.reason.message if each.reason else ""
    return matches(
        text, *_names(IngestionSummary.of(each)), each.landed.key, cause, each.terms.owner
    )


def _names(each: IngestionSummary) -> tuple[str, ...]:
    reason, state = each.reason_code, state_words(each)
    return (each.id, each.name, each.batch, *each.tables, state, reason, each.channel)


def waiting_line(each: Ingestion, now: str) -> str:
    """Return cause, rows, age and owner of an ingestion that waits for a decision."""
    cause = one_line(each.reason.message) if each.reason else ""
    if len(cause) > _CAUSE:
        cause = f"{cause[:_CAUSE]}…"
    rows = count(each.audit.rows, "row") if each.audit.rows else ""
    age = f"landed {duration(seconds(each.landed.landed_at, now), parts=1)} ago"
    owner = one_line(each.terms.owner) or each.terms.channel
    return visible(" · ".join(filter(None, (cause, rows, age, owner))))


def summary_line(each: IngestionSummary, now: str) -> str:
    """Return state, cause, rows and age of an ingestion."""
    rows = count(each.rows, "row") if each.rows else ""
    parts = (state_words(each), each.reason_code, rows, f"landed {ago(each.landed_at, now)}")
    return visible(" · ".join(filter(None, parts)))


def show_waiting(found: Sequence[Ingestion], now: str, key: str) -> None:
    """Show ingestions that wait for a decision, in this order."""
    _show(found, lambda each: waiting_line(each, now), key)


def show_summaries(found: Sequence[IngestionSummary], now: str, key: str) -> None:
    """Show ingestions of any state, in this order."""
    _show(found, lambda each: summary_line(each, now), key)


def _show(found: Sequence[_Listed], line: Callable[[_Listed], str], key: str) -> None:
    for each in found[: _shown(key)]:
        with st.container(gap=None):
            label = f"{code(tables(each.tables))} {code(each.name)}"
            icon = _ICONS.get(ShownState.of(each), _IN_FLIGHT)
            formatting.ingestion(each.id, label, icon)
            st.text(line(each))
    _more(len(found), key)


def _shown(key: str) -> int:
    """Return how many are shown now."""
    shown: int = st.session_state.get(key, AT_ONCE)
    return shown


def _more(every: int, key: str) -> None:
    """Show a button for more, if there are more."""

    def more() -> None:
        st.session_state[key] = _shown(key) + AT_ONCE

    if every > _shown(key):
        st.button(f"Show more of {every:,}", key=f"more {key}", on_click=more)
