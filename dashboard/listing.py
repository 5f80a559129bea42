"""Grids of ingestions: a row each, sorted by the reader, opened by a button, some selected."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Literal, TypeVar

import pandas as pd
import streamlit as st

from dashboard import formatting
from dashboard.formatting import code, harmless, tables
from functions.model.ingestion import Ingestion
from functions.model.ingestion_summary import IngestionSummary
from functions.model.shown_state import ShownState, is_approved, state_words
from functions.operations.decisions.cause import version
from lakegate.text import count, one_line
from lakegate.times import seconds

SCREEN = 25  # rows of a grid that are seen at once
_PAUSE, _MOST = 300.0, 1_000  # seconds without a landing end a burst; files of one that are counted
_ROW, _HEAD = 30, 38  # pixels
_COLOURS = {
    ShownState.PUBLISHED: "green",
    ShownState.REJECTED: "orange",
    ShownState.ERRORED: "red",
    ShownState.IGNORED: "gray",
    ShownState.DISCARDED: "gray",
    ShownState.SUPERSEDED: "gray",
}
_IN_FLIGHT = "blue"
_Listed = TypeVar("_Listed", Ingestion, IngestionSummary)


def colour(state: ShownState) -> Any:
    """Return Streamlit's name of a state's colour."""
    return _COLOURS.get(state, _IN_FLIGHT)


def search(label: str) -> str:
    """Show a field to search in, and return its text; it is looked for while one types."""
    return str(st.text_input(label, type="search", live=True, width=340))


def filters() -> AbstractContextManager[Any]:
    """Return where to put the filters, which are folded: a phone has little room."""
    folded: AbstractContextManager[Any] = st.popover("Filters", icon=":material/filter_list:")
    return folded


def choice(label: str, options: Sequence[str], key: str) -> str:
    """Show choices, and return the chosen one: a key keeps it when other choices come or go."""
    return str(st.selectbox(label, options, key=key, width=220))


def matches(text: str, *fields: str) -> bool:
    """Return if every word of a search is somewhere in the fields, in any case."""
    known = "\n".join(fields).lower()
    return all(word in known for word in text.lower().split())


def is_meant(text: str, each: IngestionSummary) -> bool:
    """Return if a search means an ingestion: by file, table, state, code of its reason, or id."""
    return matches(text, *_names(each))


def is_waiting_meant(text: str, each: Ingestion) -> bool:
    """Return if a search means an ingestion that waits: by key, cause and owner too."""
    names = _names(IngestionSummary.of(each))
    return matches(text, *names, each.landed.key, each.reason_text, each.terms.owner)


def _names(each: IngestionSummary) -> tuple[str, ...]:
    reason, state = each.reason_code, state_words(each)
    return (each.id, each.name, each.batch, *each.tables, state, reason, each.channel)


def burst(newest_first: Iterable[IngestionSummary]) -> str:
    """Return how much is done of what landed lately without a pause: `178 of 200 files done`.

    "" if all of it is. The files are those that landed, the newest first.
    """
    files: list[IngestionSummary] = []
    for each in newest_first:
        paused = files and seconds(each.landed_at, files[-1].landed_at) > _PAUSE
        if paused or len(files) == _MOST:
            break
        files.append(each)
    done = sum(each.ended for each in files)
    return f"{done:,} of {count(len(files), 'file')} done" if done < len(files) else ""


def owner(each: Ingestion) -> str:
    """Return its owner, or the channel of its alerts."""
    return one_line(each.terms.owner or each.terms.channel) or "nobody named"


def show_waiting(ingestions: Sequence[Ingestion], key: str) -> list[Ingestion]:
    """Show ingestions that wait for a decision, in this order; return the selected ones."""
    causes = [one_line(each.reason_text) for each in ingestions]
    briefs = map(IngestionSummary.of, ingestions)
    rows = [_row(b, c, owner(e)) for b, c, e in zip(briefs, causes, ingestions, strict=True)]
    return _grid(ingestions, rows, key, "Files that need a decision")


def show_summaries(summaries: Sequence[IngestionSummary], key: str) -> list[IngestionSummary]:
    """Show ingestions of any state, in this order; return the selected ones."""
    rows = [_row(each, _reason(each), each.channel) for each in summaries]
    return _grid(summaries, rows, key, "Files that landed")


def _reason(each: IngestionSummary) -> str:
    return f"approved by {each.approved_by}" if is_approved(each) else each.reason_code


def _row(each: IngestionSummary, cause: str, owner: str) -> dict[str, Any]:
    return {
        "state": str(ShownState.of(each)),
        "file": each.name,
        "table": tables(each.tables),
        "cause": cause,
        "rows": each.rows or None,
        "landed": datetime.fromisoformat(each.landed_at),
        "owner": owner,
    }


def _grid(
    ingestions: Sequence[_Listed], rows: Sequence[Mapping[str, Any]], key: str, what: str
) -> list[_Listed]:
    """Show rows as a grid, and open the one whose button was pressed."""
    if not ingestions:
        return []
    shown = [{**row, "state": [row["state"]]} for row in harmless(rows)]
    above = st.container()
    pressed, chosen = pick(shown, f"{key} {version(ingestions)}", _COLUMNS, "multi-row", what)
    if pressed is not None:
        query = {"id": ingestions[pressed].id}
        st.switch_page(formatting.page(formatting.INGESTION), query_params=query)
    with above:
        for row in chosen[:1]:  # to be opened by the keyboard, or in a new tab
            each = ingestions[row]
            formatting.ingestion(each.id, f"Open {code(each.name)}", ":material/open_in_full:")
    return [ingestions[row] for row in chosen]


def pick(
    rows: Sequence[Mapping[str, Any]],
    key: str,
    columns: Mapping[str, Any],
    mode: Literal["multi-row", "single-row"],
    what: str,
) -> tuple[int | None, list[int]]:
    """Show rows to choose from; return the one whose button was pressed, and the selected ones.

    A key belongs to these very rows, so that no selection passes to others.
    """
    pressed = f"open {key}"
    button = st.column_config.ButtonColumn(
        "open", width=70, type="tertiary", key=pressed, pinned=True
    )
    grid = st.dataframe(
        pd.DataFrame([{"open": "Open", **row} for row in rows]),
        hide_index=True,
        height=_ROW * min(len(rows), SCREEN) + _HEAD,
        row_height=_ROW,
        column_config={"open": button, **columns},
        on_select="rerun",
        selection_mode=mode,
        placeholder="",
        key=key,
        alt=f"{what}; Shift and Space select a row",
    )
    click = st.session_state.get(pressed)
    return (click["row"] if click else None), list(grid["selection"]["rows"])


_COLUMNS: Mapping[str, Any] = {
    "state": st.column_config.MultiselectColumn(
        width=110,
        options=[str(state) for state in ShownState],
        color=[colour(state) for state in ShownState],
    ),
    "file": st.column_config.TextColumn(width="medium"),
    "cause": st.column_config.TextColumn(width=300),
    "rows": st.column_config.NumberColumn(format="localized", width="small"),
    "landed": st.column_config.DatetimeColumn(format="distance", timezone="UTC", width=120),
}
