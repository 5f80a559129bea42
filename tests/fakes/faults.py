"""A journal of every call to an outside system, and faults at any of them.

A fault strikes before a call (it was never made) or after it (it was made, and the caller does not
learn it). What it does is up to the test: raise an error of the adapter's, end the process, or let
something else happen meanwhile.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from lakegate.errors import Transient

When = Literal["before", "after"]


class ProcessDied(BaseException):
    """The process ended here: no handler of errors runs any more."""


@dataclass
class Fault:
    """What happens at a call: `effect`, before or after it, at the next `times` that match."""

    effect: Callable[[], object]
    when: When = "before"
    times: float = 1


@dataclass(eq=False)
class _Coming:
    call: str
    fault: Fault
    skipped: int


class Journal:
    """The calls so far, as `adapter.method`, and the faults that are still to strike.

    `following` are the numbers of those that a process makes right after the one before returned,
    so that a moment before one of them is the moment after that one. `pause` is asked before each
    call: it may have others go on first, and gives the faults that are to strike then.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.following: set[int] = set()
        self.pause: Callable[[str], Iterable[Fault]] = lambda call: ()
        self._returned = -1
        self._by_number: dict[int, Fault] = {}
        self._by_name: dict[str, Fault] = {}
        self._coming: list[_Coming] = []

    def strike_at(self, number: int, fault: Fault) -> None:
        """Have the fault strike at the call of that number, from 0."""
        self._by_number[number] = fault

    def strike(self, call: str, fault: Fault) -> None:
        """Have the fault strike at every call of that name, until `times` are used up."""
        self._by_name[call] = fault

    def strike_later(self, call: str, fault: Fault, skipped: int) -> None:
        """Have the fault strike once at a call of that name, after `skipped` more of them."""
        self._coming.append(_Coming(call, fault, skipped))

    def repair(self, call: str) -> None:
        """Have the calls of that name work again."""
        del self._by_name[call]

    def watched(self, name: str, adapter: object) -> Any:
        """The adapter, each of whose methods writes this journal and meets the faults."""
        return _Watched(self, name, adapter)

    def part(self) -> None:
        """Another process makes the next call, or this one first asked for the time or a token."""
        self._returned = -1

    def leave(self, number: int) -> None:
        """The call of that number returned."""
        self._returned = number

    def enter(self, call: str) -> list[Fault]:
        """Write a call down; returns the faults to strike at it."""
        paused = self.pause(call)
        if 0 <= self._returned == len(self.calls) - 1:
            self.following.add(len(self.calls))
        due = [self._by_number.pop(len(self.calls), None), self._by_name.get(call)]
        self.calls.append(call)
        return [fault for fault in (*paused, *due, *self._arrived(call)) if fault]

    def _arrived(self, call: str) -> list[Fault]:
        if not self._coming:
            return []
        arrived = [coming for coming in self._coming if coming.call == call and not coming.skipped]
        self._coming = [coming for coming in self._coming if coming not in arrived]
        for coming in self._coming:
            coming.skipped -= coming.call == call
        return [coming.fault for coming in arrived]


class _Watched:
    def __init__(self, journal: Journal, name: str, adapter: object) -> None:
        self._journal, self._name, self._adapter = journal, name, adapter

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._adapter, name)
        if not callable(found):
            return found
        made = _iterated if inspect.isgeneratorfunction(found) else _called
        watched = partial(made, self._journal, f"{self._name}.{name}", found)
        setattr(self, name, watched)  # the next look finds it there
        return watched


def _called(journal: Journal, call: str, made: Callable[..., Any], *args: Any, **named: Any) -> Any:
    faults, number = journal.enter(call), len(journal.calls) - 1
    _strike(faults, "before")
    result = made(*args, **named)
    _strike(faults, "after")
    journal.leave(number)
    return result


def _iterated(
    journal: Journal, call: str, made: Callable[..., Iterator[Any]], *args: Any
) -> Iterator[Any]:
    faults, number = journal.enter(call), len(journal.calls) - 1
    _strike(faults, "before")
    yield from made(*args)
    _strike(faults, "after")
    journal.leave(number)


def _strike(faults: list[Fault], when: str) -> None:
    for fault in faults:
        if fault.when == when and fault.times > 0:
            fault.times -= 1
            fault.effect()


def unavailable() -> None:
    """An effect: the adapter says that its system did not answer."""
    raise Transient("UNAVAILABLE", "the system did not answer")


def die() -> None:
    """An effect: the process ends."""
    raise ProcessDied
