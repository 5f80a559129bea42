"""The page's deployment, opened once for all sessions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

import streamlit as st

from access.deployment.choice import Choice
from access.deployment.deployment import Deployment
from access.ingestions.identify import identified
from dashboard.serve.team_door import PERSON
from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion
from functions.telemetry import logger
from lakegate.errors import LakegateError, Transient

if TYPE_CHECKING:
    from access.tables.reader import Reader


@dataclass(frozen=True)
class Opened:
    """A deployment, its adapters, and its name."""

    deployment: Deployment
    adapters: Adapters
    name: str

    def reader(self, reference: str) -> "Reader":
        """Return a reader of the tables at a branch, or at `branch@hash`."""
        return self.deployment.reader(reference)


@st.cache_resource(show_spinner=False)
def opened(choice: Choice) -> Opened:
    """Return the chosen deployment, opened once, until `opened.clear()`.

    Raises LakegateError for a missing deployment, and while the local stack is down.
    """
    found = choice.open()
    return Opened(found, found.adapters(), choice.name)


def named(opened: Opened, wanted: str) -> Ingestion:
    """Return the ingestion with an id, or its beginning, in an address. Raises LakegateError."""
    try:
        return identified(opened.adapters.ledger, wanted)
    except LakegateError:
        st.title("Ingestion", anchor=False)  # each view has one heading, this one too
        raise


def person() -> str:
    """Return who looks at a team's page, as its proxy says; "" at a page of one's own.

    Raises LakegateError NOT_NAMED.
    """
    if not st.get_option("server.trustedUserHeaders"):
        return ""
    if name := unquote(str(st.user.get(PERSON) or "")):
        return name
    raise LakegateError("NOT_NAMED", "the proxy named nobody: open the page anew")


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


# Show errors as sentences.

_ADVICE = {
    "STACK_DOWN": "Start it with `lakegate up`, then reload this page.",
    "NO_STACK": "Start it with `lakegate up`, then reload this page.",
    "NO_REPORT": "Its timeline tells how far it came.",
    "UNKNOWN_REFERENCE": "Somebody has just deleted it: reload the page.",
    "UNKNOWN_INGESTION": "Search for it in the list of ingestions.",
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
