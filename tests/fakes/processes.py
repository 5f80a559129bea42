"""Processes that advance from one call to an outside system to the next, in any order."""

import threading
from collections.abc import Callable, Iterable

from tests.fakes.faults import Fault, ProcessDied, die

_here = threading.local()


class Process:
    """Work that stops before each of its calls until the test continues it.

    `call` is the call before which it stopped, "" before its start.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        self.call = ""
        self.ended = False
        self._work = work
        self._faults: Iterable[Fault] = ()
        self._died = False
        self._error: BaseException | None = None
        self._going, self._standing = threading.Lock(), threading.Lock()
        self._going.acquire()
        self._standing.acquire()
        threading.Thread(target=self._run, daemon=True).start()

    def go(self, *faults: Fault) -> None:
        """Make its call, which meets these faults, and continue to the next one or the end."""
        self._faults = faults
        self._died |= any(fault.effect is die for fault in faults)
        self._going.release()
        self._standing.acquire()
        if self._error:
            raise self._error

    def end(self) -> None:
        """Continue to its end."""
        while not self.ended:
            self.go()

    def reach(self, *calls: str) -> bool:
        """Continue until it is about to make calls that begin so, one after the other.

        Return whether it is: it may end earlier.
        """
        for call in calls:
            while not self.ended and not self.call.startswith(call):
                self.go()
        return not self.ended

    def kill(self) -> None:
        """End it at its present call."""
        while not self.ended:
            self.go(Fault(die))

    def stand(self, call: str) -> Iterable[Fault]:
        """Wait before a call; return the faults that strike at it.

        Raise ProcessDied if it died before, as what it does in the end is not done then.
        """
        if self._died:
            raise ProcessDied
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
    """Stop the process that makes a call before that call; let calls from elsewhere pass."""
    process: Process | None = getattr(_here, "process", None)
    return process.stand(call) if process else ()
