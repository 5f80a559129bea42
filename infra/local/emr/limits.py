"""How many calls EMR Serverless takes (User Guide, "Endpoints and quotas", API limits)."""

import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from infra.local.emr.api import AwsError, Require

BURST = 25  # calls at once
RATE = 1.0  # calls a second from then on
LIMITED = ("StartJobRun", "ListJobRuns")


class Bucket:
    """The calls of one operation that may be made now; `clock` returns seconds.

    Threads may share this object.
    """

    def __init__(self, clock: Callable[[], float], burst: int = BURST) -> None:
        self._clock = clock
        self._burst = burst
        self._left = float(burst)
        self._at = clock()
        self._lock = Lock()

    def take(self) -> bool:
        """Return whether a call may be made; it is then counted."""
        with self._lock:
            now = self._clock()
            self._left = min(self._burst, self._left + RATE * (now - self._at))
            self._at = now
            if self._left < 1:
                return False
            self._left -= 1
            return True


def require_pace(burst: int = BURST, clock: Callable[[], float] = time.monotonic) -> Require:
    """Return a check that raises AwsError for calls that come too fast."""
    buckets = {operation: Bucket(clock, burst) for operation in LIMITED}

    def require(operation: str, given: Mapping[str, Any], signature: str) -> None:
        if operation in buckets and not buckets[operation].take():
            raise AwsError("ThrottlingException", "Rate exceeded")

    return require
