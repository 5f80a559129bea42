"""A guard of the promises, and its removal."""

from dataclasses import dataclass
from typing import Any

from tests.fakes.openings import NOTHING
from tests.fakes.sabotage import Patch
from tests.fakes.stage import Story


@dataclass(frozen=True)
class Guard:
    """A check in the code: its `patches` remove it, and then a story breaks a promise.

    `breach` is a regular expression for the message of the broken promise. `opening` is the
    beginning of the searched stories, for a guard that few other stories reach.
    """

    name: str
    breach: str
    patches: tuple[Patch, ...]
    opening: Story = NOTHING


def nothing(*_: Any) -> None:
    """Do nothing, in the place of a function without a result."""


def never(*_: Any) -> bool:
    """Return False, in the place of a predicate."""
    return False


def always(*_: Any) -> bool:
    """Return True, in the place of a predicate."""
    return True
