"""The faults that `PUT /_control` sets."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

# The number of the next ones, or all of them.
HowMany = int | Literal["all"]


class NoSuchFault(Exception):
    """A request to `/_control` for an unknown fault."""


@dataclass
class EventFaults:
    """The faults of events; `states` limits them to changes to those states."""

    lose: HowMany = 0
    double: HowMany = 0
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
        setattr(faults, name, max(0, left - 1))
        return left > 0
