"""The page's deployment, opened once for all sessions."""

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
from lakegate.errors import LakegateError

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
    deployment = choice.open()
    return Opened(deployment, deployment.adapters(), choice.name)


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
