"""Replay, publish anyway, discard: each action is explained first, and confirmed by a person."""

from collections.abc import MutableMapping
from dataclasses import dataclass, replace

import streamlit as st

from access.deployment.user import user_name
from dashboard.actions_plan import (
    ActionRequest,
    Plan,
    Verb,
    carry_out,
    has_unreadable,
    offered,
    plan,
)
from dashboard.formatting import code
from dashboard.serve import session, watching
from dashboard.serve.errors import show_error
from dashboard.serve.session import Opened, person
from functions.model.ingestion import ALERTED, Ingestion
from functions.model.ingestion_summary import status_text
from functions.operations.decisions.preconditions import command_despite
from lakegate.errors import LakegateError, Transient
from lakegate.job.change import LONGEST_NAME, LONGEST_REASON
from lakegate.job.landing import ID_PART
from lakegate.refusals import RightMissing
from lakegate.text import visible

ICONS = {
    Verb.REPLAY: ":material/replay:",
    Verb.PUBLISH: ":material/publish:",
    Verb.DISCARD: ":material/delete:",
}
_DESTROYS = (Verb.DISCARD,)
_WHY_NOT = "Nothing of it can be published: it was discarded, or no row was written and judged."
_NOT_NEWEST = (
    "A newer version of it is published: with both on main, rows may be there twice. "
    "To have both, give {}."
)
_REPLACED = "A newer version of it is published, which replaces it: drop it again for its rows."
_DONE = ":material/check_circle: **Done**"
_AGAIN = "Press again in a moment: `lakegate doctor` tells what is wrong if it lasts."
_GRANTED = "Then press again."
_CONTRACTS = {False: "the contract in force now", True: "the contract of the last attempt"}


@dataclass(frozen=True)
class _Done:
    """The outcome, in sentences, of a verb that was `pressed` for a revision.

    `refused` if it was not carried out. `since` is the ingestion's revision when the page first
    showed the outcome, None before that.
    """

    words: tuple[str, ...]
    pressed: tuple[Verb, int]
    refused: bool = False
    since: tuple[object, ...] | None = None


def show(opened: Opened, ingestion: Ingestion) -> None:
    """Show the buttons for the possible actions, and the outcome of the last one."""
    _tell_last(ingestion)
    if ingestion.state not in ALERTED:
        return
    may = offered(ingestion)
    with st.container(horizontal=True):
        for verb in Verb:
            why_not = None if verb in may else _why_not(verb, ingestion)
            asked = st.button(
                label(verb, f"{verb} …"),
                key=f"{verb.name} {ingestion.id}",  # a press is for what was shown
                icon=ICONS[verb],
                disabled=verb not in may,
                help=why_not,
            )
            if asked:
                # The dialog keeps the ingestion as the page shows it.
                watching.dialog(str(verb), ask, verb, opened, ingestion)


def label(verb: Verb, words: str) -> str:
    """Return the label of a verb's button; what destroys is red."""
    return f":red[{words}]" if verb in _DESTROYS else words


def _why_not(verb: Verb, ingestion: Ingestion) -> str | None:
    """Return why a verb is not offered, None if that needs no words."""
    if verb is not Verb.DISCARD and ingestion.superseded_by:
        command = "replay" if verb is Verb.REPLAY else "publish"
        both = command_despite(command, ingestion, ingestion.superseded_by)
        return _REPLACED if ingestion.terms.replaces else _NOT_NEWEST.format(both)
    return _WHY_NOT if verb is Verb.PUBLISH else None


def ask(verb: Verb, opened: Opened, ingestion: Ingestion) -> None:
    """Explain the effect on the ingestion as shown, and carry it out on confirmation."""
    which = f"{code(ingestion.name)}, ingestion {code(ingestion.id[:ID_PART])}"
    st.markdown(f"{which} of {code(opened.name)}")
    try:
        original = verb is Verb.REPLAY and _which_contract(ingestion)
        nulls = verb is Verb.PUBLISH and _wants_nulls(opened, ingestion)
        with st.spinner("Looking at what would happen"):
            request = ActionRequest(verb, original=original, null_unreadable=nulls)
            effect = plan(opened.adapters, ingestion, request)
    except LakegateError as error:
        show_error(error, "Not possible now")
        return
    _describe(effect)
    if asked := confirmed(ingestion.id, request):
        _act(opened, ingestion, asked)


def confirmed(key: str, request: ActionRequest) -> ActionRequest | None:
    """Ask who wants it, and why to publish; return the request with that, None before a yes."""
    verb = request.verb
    with st.form(f"confirm {key}", border=False):
        reason = ""
        by = _who()
        if verb is Verb.PUBLISH:
            reason = st.text_area(
                "Why, although checks failed", max_chars=LONGEST_REASON, height=90
            )
        yes = st.form_submit_button(
            label(verb, f"Yes, {verb.lower()}"),
            type="secondary" if verb in _DESTROYS else "primary",
            icon=ICONS[verb],
        )
    return replace(request, by=by, reason=reason) if yes else None


def _who() -> str:
    """Return the name of who decides: on a team's page the one who is logged in, and no other."""
    if by := person():
        st.text(visible(f"The ledger keeps your name: {by}"))
        return by
    return st.text_input("Your name", value=user_name(), max_chars=LONGEST_NAME)


def _which_contract(ingestion: Ingestion) -> bool:
    """Ask if the original contract applies."""
    if not all(version for _, version in ingestion.contracts):
        return False
    return st.radio("By", list(_CONTRACTS), format_func=_CONTRACTS.__getitem__, horizontal=True)


def _wants_nulls(opened: Opened, ingestion: Ingestion) -> bool:
    """Ask if rows with unparseable cells are to be published as well."""
    if not has_unreadable(opened.adapters, ingestion):
        return False
    return st.checkbox("Publish also the rows that could not be read, with null in such cells")


def _describe(effect: Plan) -> None:
    for line in effect.lines:
        st.markdown(line)
    if effect.contract_changes:
        with st.expander("How the contract differs", icon=":material/difference:", expanded=True):
            # Without colours, of which some are too pale: each line begins with its sign.
            st.code("\n".join(effect.contract_changes), language=None)


def _act(opened: Opened, ingestion: Ingestion, request: ActionRequest) -> None:
    """Carry out the request once: a second press finds it done, and retries what failed."""
    outcomes = _outcomes()
    last, pressed = outcomes.get(ingestion.id), (request.verb, ingestion.revision)
    if not last or last.refused or last.pressed != pressed:
        with st.spinner("Under way"):
            try:
                done = _Done(carry_out(opened.adapters, ingestion, request), pressed)
            except LakegateError as error:
                if error.code == "NAME_NEEDED":
                    st.warning("Say who publishes it and why: main's log keeps both.")
                    return
                done = _Done(_refusal(opened, ingestion, error), pressed, refused=True)
            outcomes[ingestion.id] = done
    st.rerun()


def _refusal(opened: Opened, ingestion: Ingestion, error: LakegateError) -> tuple[str, ...]:
    if isinstance(error, Transient):
        session.opened.clear()
        advice = _GRANTED if isinstance(error, RightMissing) else _AGAIN
        return error.message, advice
    try:
        return error.message, status_text(opened.adapters.ledger.get(ingestion.id))
    except LakegateError:
        return (error.message,)


def _outcomes() -> MutableMapping[str, _Done]:
    """Return the outcome of the last press for each ingestion id of this session."""
    outcomes: MutableMapping[str, _Done] = st.session_state.setdefault("outcomes", {})
    return outcomes


def _tell_last(ingestion: Ingestion) -> None:
    """Show the outcome of the last press, at least once, until the ingestion changes."""
    outcomes = _outcomes()
    done = outcomes.get(ingestion.id)
    now = (ingestion.attempt, ingestion.ended and ingestion.state, ingestion.is_settled)
    if not done:
        return
    if done.since in (None, now):
        outcomes[ingestion.id] = replace(done, since=now)
        _tell(done)
    else:
        del outcomes[ingestion.id]


def _tell(done: _Done) -> None:
    title = ":material/block: **It was not done**" if done.refused else _DONE
    with st.container(border=True):
        st.markdown(title)
        for line in done.words:
            st.text(visible(f"{line[:1].upper()}{line[1:]}"))
