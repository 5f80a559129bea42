"""A journal of every call to an outside system, and faults at any of them.

A fault strikes before a call (it was never made) or after it (it was made, but its result is lost).
The test chooses its effect: raise an error of the adapter, end the process, or run something else
meanwhile.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from lakegate.errors import LakegateError, Transient

When = Literal["before", "after"]


class ProcessDied(BaseException):
    """The process ended here: no error handler runs any more."""


@dataclass
class Fault:
    """The `effect` before or after the next `times` matching calls."""

    effect: Callable[[], object]
    when: When = "before"
    times: float = 1


@dataclass(eq=False)
class _Coming:
    fault: Fault
    skipped: int


class Journal:
    """The calls so far, as `adapter.method`, and the faults that have yet to strike.

    `following` are the numbers of calls that a process makes right after its previous call
    returned, so that the moment before such a call equals the moment after the previous one.
    `pause` runs before each call: it may let other processes continue, and returns the faults that
    strike then. `has_struck` tells whether any fault took effect.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.following: set[int] = set()
        self.has_struck = False
        self.pause: Callable[[str], Iterable[Fault]] = lambda call: ()
        self._returned = -1
        self._by_number: dict[int, Fault] = {}
        self._by_name: dict[str, Fault] = {}
        self._coming: dict[str, list[_Coming]] = {}

    def strike_at(self, number: int, fault: Fault) -> None:
        """Schedule the fault at the call with that number, counted from 0."""
        self._by_number[number] = fault

    def strike(self, call: str, fault: Fault) -> None:
        """Schedule the fault at every call of that name, until `times` are used up."""
        self._by_name[call] = fault

    def strike_later(self, call: str, fault: Fault, skipped: int) -> None:
        """Schedule the fault once at a call of that name, after `skipped` more of them."""
        self._coming.setdefault(call, []).append(_Coming(fault, skipped))

    def repair(self, call: str) -> None:
        """Remove the fault from the calls of that name."""
        del self._by_name[call]

    def watched(self, name: str, adapter: object) -> Any:
        """Return the adapter with methods that write this journal and meet the faults."""
        return _Watched(self, name, adapter)

    def between(self, call: str) -> None:
        """Record a point within a call, where a fault may strike as at a call of its own."""
        with _Struck(self, call):
            pass

    def part(self) -> None:
        """Separate the next call: another process makes it, or reads the time or a token first."""
        self._returned = -1

    def leave(self, number: int) -> None:
        """Note that the call of that number returned."""
        self._returned = number

    def enter(self, call: str) -> list[Fault]:
        """Record a call; return the faults that strike at it."""
        paused, number = self.pause(call), len(self.calls)
        if 0 <= self._returned == number - 1:
            self.following.add(number)
        self.calls.append(call)
        found = [*paused]
        if number in self._by_number:
            found.append(self._by_number.pop(number))
        if call in self._by_name:
            found.append(self._by_name[call])
        return found + self._arrived(call) if call in self._coming else found

    def _arrived(self, call: str) -> list[Fault]:
        arrived = [coming.fault for coming in self._coming[call] if not coming.skipped]
        left = [coming for coming in self._coming[call] if coming.skipped]
        for coming in left:
            coming.skipped -= 1
        self._coming[call] = left
        return arrived


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
    with _Struck(journal, call):
        return made(*args, **named)


def _iterated(
    journal: Journal, call: str, made: Callable[..., Iterator[Any]], *args: Any
) -> Iterator[Any]:
    with _Struck(journal, call):
        yield from made(*args)


class _Struck:
    """A context that lets the faults strike before and after what is done in it.

    It is a class, as one made of a generator takes as long as the fakes' calls.
    """

    def __init__(self, journal: Journal, call: str) -> None:
        self._journal, self._call = journal, call

    def __enter__(self) -> None:
        self._faults, self._number = self._journal.enter(self._call), len(self._journal.calls) - 1
        self._strike("before")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # An error of the system is an answer as well, which may be lost as any other.
        if kind is None or issubclass(kind, LakegateError):
            self._strike("after")
        if kind is None:
            self._journal.leave(self._number)

    def _strike(self, when: str) -> None:
        for fault in self._faults:
            if fault.when == when and fault.times > 0:
                fault.times -= 1
                self._journal.has_struck = True
                fault.effect()


def unavailable() -> None:
    """Raise the adapter's error for a system that does not answer, as an effect."""
    raise Transient("UNAVAILABLE", "the system did not answer")


def die() -> None:
    """End the process, as an effect."""
    raise ProcessDied


KINDS: dict[str, tuple[Callable[[], None], When]] = {
    "unavailable": (unavailable, "before"),
    "died before": (die, "before"),
    "timed out although done": (unavailable, "after"),
    "died after": (die, "after"),
}
