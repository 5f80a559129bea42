"""The deployment that the page shows, opened once for all who look at it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from functions.world import World
from reading.deployment import Choice, Deployment

if TYPE_CHECKING:
    from reading.reader import Reader


@dataclass(frozen=True)
class Opened:
    """A deployment, its adapters, and what people call it."""

    deployment: Deployment
    world: World
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
    return Opened(found, found.world(), choice.name)
