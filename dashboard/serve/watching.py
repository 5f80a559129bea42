"""Look again while something is in flight."""

from collections.abc import Callable

import streamlit as st

from dashboard.serve.errors import errors_shown

_EVERY = 5.0  # seconds between two looks at what is in flight


def watch(before: object, look: Callable[[], object]) -> None:
    """Look again every few seconds, and run the whole view once that is not as `before`.

    To be called only while something is in flight: a view without this is left alone.
    """

    @st.fragment(run_every=_EVERY)
    def watching() -> None:
        with errors_shown():
            changed = look() != before
        if changed:
            st.rerun()

    watching()
