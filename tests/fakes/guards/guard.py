"""A guard of the promises, and how to take it out."""

from dataclasses import dataclass
from typing import Any

from tests.fakes.openings import NOTHING
from tests.fakes.sabotage import Patch
from tests.fakes.stage import Story


@dataclass(frozen=True)
class Guard:
    """With its `patches` the guard is gone, and a story breaks a promise.

    `breach` is a regular expression on the message of the broken promise. `opening` is what the
    search lets stories begin with where few of the others come by the guard.
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
