"""Decide at once about all files with one cause: listed first, and confirmed by a person."""

from collections.abc import Iterable, Sequence

import streamlit as st

from dashboard.actions import ICONS, confirmed
from dashboard.actions_plan import ActionRequest, Verb, decide, offered
from dashboard.formatting import code
from dashboard.serve.session import Opened
from functions.model.ingestion import Ingestion
from functions.operations.decisions.cause import (
    cause,
    each_alone,
    named,
    refusal,
    told,
    version,
    waiting_with,
)
from lakegate.text import count, visible

_TOLD = "told of a group"
_DONE = {Verb.REPLAY: "Replayed", Verb.PUBLISH: "Approved", Verb.DISCARD: "Discarded"}
_EFFECTS = {
    Verb.REPLAY: "Each runs again by the contract in force now, on a fresh branch.",
    Verb.PUBLISH: "Rows that could not be read are left out. It cannot be taken back here.",
    Verb.DISCARD: "Their branches are deleted; the landed files stay.",
}


def show(opened: Opened, waiting: Iterable[Ingestion]) -> None:
    """Show the buttons for each cause that several files have, and what became of the last press.

    The dialog has all that wait then, also those that the list does not show.
    """
    if words := st.session_state.pop(_TOLD, ""):
        with st.container(border=True):
            st.text(visible(words))
    for group in several(waiting):
        with st.container(border=True):
            why = group[0].reason.message if group[0].reason else "no reason"
            st.markdown(f"**{count(len(group), 'file')} with one cause**: {code(why)}")
            _buttons(opened, group)


def several(waiting: Iterable[Ingestion]) -> list[list[Ingestion]]:
    """Return the groups of several ingestions with one cause, in the order of their first ones."""
    groups: dict[tuple[str, ...], list[Ingestion]] = {}
    for each in waiting:
        groups.setdefault(cause(each), []).append(each)
    return [group for group in groups.values() if len(group) > 1]


def _buttons(opened: Opened, group: Sequence[Ingestion]) -> None:
    possible = {verb for each in group for verb in offered(each)}
    with st.container(horizontal=True):
        for verb in filter(possible.__contains__, Verb):
            key = f"{verb.name} all {group[0].id}"
            if st.button(f"{verb} all …", key=key, icon=ICONS[verb]):
                st.dialog(f"{verb} all", width="medium")(ask)(verb, opened, group[0])


def ask(verb: Verb, opened: Opened, one: Ingestion) -> None:
    """List those that wait with the cause of one now, and decide about them on confirmation."""
    group = waiting_with(opened.adapters.ledger, one)
    if not group:
        st.text("Nothing waits with this cause any more: somebody was faster.")
        return
    st.markdown(f"{code(named(group))}, of {code(opened.name)}")
    st.text(_EFFECTS[verb])
    key = f"{verb.name} all {one.id} was"
    before, now = st.session_state.get(key), version(group)
    st.session_state[key] = now
    asked = confirmed(f"all {one.id}", ActionRequest(verb))
    if asked and before != now:
        st.warning("Other files wait now than when you were asked: look again, and press again.")
    elif asked and verb is Verb.PUBLISH and not (asked.by.strip() and asked.reason.strip()):
        st.warning("Say who publishes them and why: main's log keeps both.")
    elif asked:
        st.session_state[_TOLD] = _decided(opened, group, asked)
        st.rerun()


def _decided(opened: Opened, group: Sequence[Ingestion], asked: ActionRequest) -> str:
    """Decide about each, and return what became of them."""
    progress = st.progress(0.0, "Under way")
    refusals: list[str] = []
    results = each_alone(group, lambda each: decide(opened.adapters, each, asked))
    for number, (each, result) in enumerate(results, start=1):
        refusals += filter(None, [refusal(each, result)])
        progress.progress(number / len(group), f"{number:,} of {count(len(group), 'file')}")
    return told(_DONE[asked.verb], len(group), refusals, len(refusals))
