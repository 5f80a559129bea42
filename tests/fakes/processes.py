"""Processes that go on from one call to an outside system to the next, in any order."""

import threading
from collections.abc import Callable, Iterable

from tests.fakes.faults import Fault, ProcessDied, die

_here = threading.local()


class Process:
    """Work that stands still before each of its calls, until it is let go on.

    `call` is the one before which it stands, "" before it begins.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        self.call = ""
        self.ended = False
        self._work = work
        self._faults: Iterable[Fault] = ()
        self._error: BaseException | None = None
        self._going, self._standing = threading.Lock(), threading.Lock()
        self._going.acquire()
        self._standing.acquire()
        threading.Thread(target=self._run, daemon=True).start()

    def go(self, *faults: Fault) -> None:
        """Let it make its call, which meets these faults, and go on to the next one or its end."""
        self._faults = faults
        self._going.release()
        self._standing.acquire()
        if self._error:
            raise self._error

    def end(self) -> None:
        """Let it go on to its end."""
        while not self.ended:
            self.go()

    def kill(self) -> None:
        """Have it die where it stands."""
        while not self.ended:
            self.go(Fault(die))

    def stand(self, call: str) -> Iterable[Fault]:
        """Wait before a call; returns the faults that it is to meet."""
        self.call = call
        self._standing.release()
        self._going.acquire()
        return self._faults

    def _run(self) -> None:
        self._going.acquire()
        _here.process = self
        try:
            self._work()
        except ProcessDied:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised where the test is
            self._error = error
        self.ended = True
        self._standing.release()


def pause(call: str) -> Iterable[Fault]:
    """Have the process that makes a call stand before it; whoever is none of them goes on."""
    process: Process | None = getattr(_here, "process", None)
    return process.stand(call) if process else ()
