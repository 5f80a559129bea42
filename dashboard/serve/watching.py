"""Look again while something is in flight, but never under an open dialog: that would close it."""

from collections.abc import Callable

import streamlit as st

from dashboard.serve.errors import errors_shown

_EVERY = 5.0  # seconds between two looks at what is in flight
_OPEN = "a dialog is open"


def begin() -> None:
    """Begin a run of a view, which closes the dialog that was open."""
    st.session_state[_OPEN] = False


def dialog(title: str, question: Callable[..., object], *about: object) -> None:
    """Show a dialog with a question; once it is closed, the view runs again.

    An answer runs the question alone, without what shows the errors of its view.
    """

    def asked() -> None:
        with errors_shown():
            question(*about)

    st.session_state[_OPEN] = True
    st.dialog(title, width="medium", on_dismiss="rerun")(asked)()


def watch(before: object, look: Callable[[], object]) -> None:
    """Look again every few seconds, and run the whole view once that is not as `before`.

    To be called only while something is in flight: a view without this is left alone.
    """

    @st.fragment(run_every=_EVERY)
    def watching() -> None:
        with errors_shown():
            changed = look() != before
        if changed and not st.session_state.get(_OPEN):
            st.rerun()

    watching()
