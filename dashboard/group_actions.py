"""Decide at once about several files: listed first, and confirmed by a person."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import streamlit as st

from dashboard.actions import ICONS, confirmed, label
from dashboard.actions_plan import ActionRequest, Verb, decide, offered
from dashboard.formatting import code
from dashboard.serve import watching
from dashboard.serve.session import Opened
from functions.model.ingestion import Ingestion
from functions.operations.decisions.cause import (
    cause,
    each_alone,
    failures,
    named,
    refusal,
    told,
    waiting_with,
)
from lakegate.text import count, visible

_TOLD = "told of a group"
_DONE = {Verb.REPLAY: "Replayed", Verb.PUBLISH: "Approved", Verb.DISCARD: "Discarded"}
_EFFECTS = {
    Verb.REPLAY: "Each runs again by the contract in force now, on a fresh branch.",
    Verb.PUBLISH: "Rows that could not be read are left out. `lakegate retract ID` takes a file's"
    " rows back, `lakegate restore TABLE` those that replaced others.",
    Verb.DISCARD: "Their branches are deleted, for good; the landed files stay.",
}
Find = Callable[[], Sequence[Ingestion]]


def tell_last() -> None:
    """Show what became of the last press."""
    if words := st.session_state.pop(_TOLD, ""):
        with st.container(border=True):
            st.text(visible(words))


def show_causes(opened: Opened, waiting: Iterable[Ingestion]) -> None:
    """Show the buttons for each cause that several files have.

    The dialog has all that wait then, also those that the list does not show.
    """
    for group in several(waiting):
        with st.container(horizontal=True, vertical_alignment="center"):
            one = group[0]
            words = f"**{count(len(group), 'file')} with one cause** in {code(one.table)}"
            st.markdown(f"{words}: {code(one.reason_text or 'no reason')}", width="content")
            _buttons(opened, group, "all", partial(waiting_with, opened.adapters.ledger, one))


def show_selected(opened: Opened, ids: Sequence[str]) -> None:
    """Show the buttons for what may be decided about selected files."""

    def find() -> list[Ingestion]:
        return [each for each in opened.adapters.ledger.together(ids) if each.is_open]

    if group := find() if ids else []:
        _buttons(opened, group, f"{len(group):,} selected", find)


def several(waiting: Iterable[Ingestion]) -> list[list[Ingestion]]:
    """Return the groups of several ingestions with one cause, in the order of their first ones."""
    groups: dict[tuple[str, ...], list[Ingestion]] = {}
    for each in waiting:
        groups.setdefault(cause(each), []).append(each)
    return [group for group in groups.values() if len(group) > 1]


def _buttons(opened: Opened, group: Sequence[Ingestion], which: str, find: Find) -> None:
    possible = {verb for each in group for verb in offered(each)}
    with st.container(horizontal=True, width="content"):
        for verb in filter(possible.__contains__, Verb):
            key = f"{verb.name} {which} {group[0].id}"
            if st.button(label(verb, f"{verb} {which} …"), key=key, icon=ICONS[verb]):
                watching.dialog(f"{verb} {which}", ask, verb, opened, key, find)


def ask(verb: Verb, opened: Opened, key: str, find: Find) -> None:
    """List those that wait now, and decide about them on confirmation; `key` names the question."""
    group = find()
    if not group:
        st.text("None of them waits any more: somebody was faster.")
        return
    st.markdown(f"{code(named(group))}, of {code(opened.name)}")
    st.markdown(_EFFECTS[verb])
    before, now = st.session_state.get(f"{key} was"), failures(group)
    st.session_state[f"{key} was"] = now
    asked = confirmed(key, ActionRequest(verb))
    if asked and before != now:
        st.warning("Other files wait now, or one failed again: look again, and press again.")
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
