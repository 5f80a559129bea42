"""The faults that `PUT /_control` sets."""

import dataclasses
import random
from dataclasses import dataclass
from typing import Any, Literal

# The number of the next ones, "all" of them, or (below 1) a share of them.
HowMany = int | float | Literal["all"]


class NoSuchFault(Exception):
    """A request to `/_control` for an unknown fault."""


@dataclass
class EventFaults:
    """The faults of events; `states` limits them to changes to those states."""

    lose: HowMany = 0
    double: HowMany = 0
    reverse: int = 0
    delay_seconds: float = 0
    states: tuple[str, ...] = ()


@dataclass
class RequestFaults:
    """The faults of StartJobRun; `fail_with` is the caller's error."""

    fail_next_starts: HowMany = 0
    lose_next_answers: HowMany = 0
    fail_with: str = "InternalServerException"


class Faults:
    """The active faults."""

    def __init__(self) -> None:
        self._random = random.Random(0)  # noqa: S311  the same shares in every process
        self.replace({})

    def replace(self, faults: dict[str, Any]) -> None:
        """Replace all faults. Raises NoSuchFault."""
        events = faults.pop("events", {})
        try:
            self.events, self.requests = EventFaults(**events), RequestFaults(**faults)
        except TypeError as error:
            raise NoSuchFault(str(error)) from error

    def left(self) -> dict[str, Any]:
        """Return the faults that are left."""
        return {"events": dataclasses.asdict(self.events), **dataclasses.asdict(self.requests)}

    def strikes(self, faults: EventFaults | RequestFaults, name: str) -> bool:
        """Return whether this fault occurs now; a number of occurrences counts down."""
        left: HowMany = getattr(faults, name)
        if left == "all":
            return True
        if 0 < left < 1:
            return self._random.random() < left
        setattr(faults, name, max(0, left - 1))
        return left > 0
