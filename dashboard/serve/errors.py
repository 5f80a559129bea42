"""Show errors as sentences."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from dashboard.serve.session import opened
from functions.telemetry import logger
from lakegate.errors import LakegateError, Transient
from lakegate.refusals import RIGHT_MISSING

_ADVICE = {
    "STACK_DOWN": "Start it with `lakegate up`, then reload this page.",
    "NO_STACK": "Start it with `lakegate up`, then reload this page.",
    "NO_REPORT": "Its timeline tells how far it came.",
    "UNKNOWN_REFERENCE": "Somebody has just deleted it: reload the page.",
    "UNKNOWN_INGESTION": "Search for it in the list of ingestions.",
    RIGHT_MISSING: "Then reload this page.",
    "TOKEN_REFUSED": "`lakegate doctor` tells more; new tokens come by `lakegate rotate`.",
}
_AGAIN = "Reload the page in a moment. `lakegate doctor` tells what is wrong if it lasts."


@contextmanager
def errors_shown() -> Iterator[None]:
    """Show an error of the block as a sentence, with the remedy."""
    try:
        yield
    except LakegateError as error:
        show_error(error)
    except Exception:  # noqa: BLE001  nobody who looks at a page is helped by a traceback
        logger.exception("the page failed")
        st.error("Lakegate failed to show this. See the page's log.")


def show_error(error: LakegateError, what: str = "") -> None:
    """Show an error; after a transient one, everything is opened again."""
    if isinstance(error, Transient):
        opened.clear()  # a stack that was started anew has other ports and tokens
    with st.container(border=True):
        title = what or ("Not available now" if isinstance(error, Transient) else "Not found")
        st.markdown(f":material/error: **{title}**")
        st.text(f"{error.message} ({error.code})")
        if advice := _ADVICE.get(error.code, _AGAIN if isinstance(error, Transient) else ""):
            st.markdown(advice)
