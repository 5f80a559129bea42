"""What breaks a JSON Schema in a contract, and where."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from lakegate.contract.text.yaml import Node

Place = tuple[Any, str]  # the place around it, and the step from there
ROOT: Place = (None, "")


@dataclass(frozen=True)
class Fault:
    """What breaks the schema at a place; `names` are keys or choices, `known` the keys there.

    `rule` is "missing", "unknown", "choice" or "" for what `reason` says. Of alternatives none of
    which holds, `of` are all faults.
    """

    node: Node
    place: Place
    rule: str = ""
    reason: str = ""
    names: tuple[str, ...] = ()
    known: Collection[str] = ()
    of: tuple["Fault", ...] = ()

    @property
    def path(self) -> str:
        """Return the place as the path of a contract's field."""
        return "".join(self._steps()).removeprefix(".")

    @property
    def field(self) -> str:
        """Return the path of the key that is missing or unknown, else of the place."""
        keys = self.names if self.rule in ("missing", "unknown") else ()
        return ".".join(filter(None, (self.path, *keys)))

    @property
    def around(self) -> Iterator[str]:
        """Yield the paths to the place and to all that is around it."""
        steps = self._steps()
        for count in range(len(steps) + 1):
            yield "".join(steps[:count]).removeprefix(".")

    @property
    def depth(self) -> int:
        """Return how many steps lead to the place."""
        return len(self._steps())

    @property
    def telling(self) -> "Fault":
        """Return, of alternatives, the fault that is deepest in the value."""
        if not self.of:
            return self
        return max((each.telling for each in self.of), key=lambda each: each.depth)

    def _steps(self) -> list[str]:
        place, steps = self.place, []
        while place[1]:
            place, step = place
            steps.append(step)
        return steps[::-1]
