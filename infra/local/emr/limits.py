"""How many calls EMR Serverless takes (User Guide, "Endpoints and quotas", API limits)."""

import time
from collections.abc import Callable
from threading import Lock

BURST = 25  # calls at once
RATE = 1.0  # calls a second from then on
LIMITED = ("StartJobRun", "ListJobRuns")


class _Bucket:
    """The calls of one operation that may be made now."""

    def __init__(self, burst: int, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._burst = burst
        self._left = float(burst)
        self._at = clock()

    def take(self) -> bool:
        now = self._clock()
        self._left = min(self._burst, self._left + RATE * (now - self._at))
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Limits:
    """The calls that may be made now, of each operation; `clock` returns seconds.

    Threads may share this object.
    """

    def __init__(self, burst: int = BURST, clock: Callable[[], float] = time.monotonic) -> None:
        self._buckets = {operation: _Bucket(burst, clock) for operation in LIMITED}
        self._lock = Lock()

    def take(self, operation: str) -> bool:
        """Return whether an operation may be called; the call is then counted."""
        with self._lock:
            return operation not in self._buckets or self._buckets[operation].take()
