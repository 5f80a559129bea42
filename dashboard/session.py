"""The deployment that the page shows, opened once for all who look at it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from access.deployment import Choice, Deployment
from functions.adapters.all import Adapters
from functions.telemetry import logger
from lakegate.errors import LakegateError, Transient

if TYPE_CHECKING:
    from access.tables import Reader


@dataclass(frozen=True)
class Opened:
    """A deployment, its adapters, and what people call it."""

    deployment: Deployment
    adapters: Adapters
    name: str

    def reader(self, reference: str) -> "Reader":
        """What reads the tables at a branch, or at `branch@hash`."""
        return self.deployment.reader(reference)


@st.cache_resource(show_spinner=False)
def opened(choice: Choice) -> Opened:
    """What was chosen, opened: once, until `opened.clear()`.

    Raises LakegateError where it is not there, or where the local stack is down.
    """
    found = choice.open()
    return Opened(found, found.adapters(), choice.name)


# How errors reach the people who look at the page: as sentences.

_ADVICE = {
    "STACK_DOWN": "Start it with `lakegate up`, then reload this page.",
    "NO_STACK": "Start it with `lakegate up`, then reload this page.",
    "NO_REPORT": "Its timeline tells how far it came.",
    "UNKNOWN_REFERENCE": "Somebody has just deleted it: reload the page.",
    "UNKNOWN_INGESTION": "The overview lists those there are.",
    "TOKEN_REFUSED": "`lakegate doctor` tells more; new tokens come by `lakegate rotate`.",
}
_AGAIN = "Reload the page in a moment. `lakegate doctor` tells what is wrong if it lasts."


@contextmanager
def told() -> Iterator[None]:
    """Show an error of what is done here as a sentence, and what to do about it."""
    try:
        yield
    except LakegateError as error:
        tell(error)
    except Exception:  # noqa: BLE001  nobody who looks at a page is helped by a traceback
        logger.exception("the page failed")
        st.error("This could not be shown: a fault of Lakegate's. The page's log tells more.")


def tell(error: LakegateError, what: str = "This cannot be shown") -> None:
    """Show an error that is meant for people; after one in passing all is opened anew."""
    if isinstance(error, Transient):
        opened.clear()  # a stack that was started anew has other ports and tokens
    with st.container(border=True):
        st.markdown(f":material/error: **{what}**")
        st.text(f"{error.message} ({error.code})")
        advice = _ADVICE.get(error.code, _AGAIN if isinstance(error, Transient) else "")
        if advice:
            st.markdown(advice)
