"""The deployment that the page shows, opened once for all who look at it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from functions.world import World
from reading import deployment
from reading.deployment import Deployment

if TYPE_CHECKING:
    from reading.reader import Reader


@dataclass(frozen=True)
class Opened:
    """A deployment and its adapters."""

    deployment: Deployment
    world: World

    def reader(self, reference: str) -> "Reader":
        """What reads the tables at a branch, or at `branch@hash`."""
        return self.deployment.reader(reference)


@st.cache_resource(show_spinner=False)
def opened(stage: str) -> Opened:
    """The deployment of a stage, or with "" the one that the command line would work on.

    Raises LakegateError where there is none, or where the local stack is down.
    """
    found = deployment.find(stage or None)
    return Opened(found, found.world())
