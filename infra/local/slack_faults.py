"""The faults of the Slack stand-in, which `PUT /_control` sets."""

import time
from dataclasses import dataclass, replace
from typing import Any


class SlackError(Exception):
    """A call that Slack refuses with this error code; `more` goes into the answer."""

    def __init__(self, code: str, **more: Any) -> None:
        super().__init__(code)
        self.answer = {"ok": False, "error": code, **more}


class Unavailable(Exception):
    """A call that is answered with this HTTP status; a later retry may succeed."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.answer = {"ok": False, "error": code}
        self.status = status
        self.headers = {"Retry-After": "1"} if status == 429 else {}


@dataclass(frozen=True)
class Faults:
    """The faults that are set."""

    fail_next: int = 0
    away_seconds: float = 0
    ratelimit_next: int = 0
    burst: int | None = None
    missing_channels: tuple[str, ...] = ()
    archived_channels: tuple[str, ...] = ()
    sends_again: int = 0
    app_seconds: float = 3


class ActiveFaults:
    """The active faults and each channel's rate limit."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._away_until = time.monotonic() + faults.away_seconds
        self._full: dict[str, float] = {}

    def check_call(self) -> None:
        """Raise Unavailable if this call is to fail."""
        left = self._faults
        if left.fail_next > 0:
            self._faults = replace(left, fail_next=left.fail_next - 1)
            raise Unavailable(503, "service_unavailable")
        if time.monotonic() < self._away_until:
            raise Unavailable(503, "service_unavailable")
        if left.ratelimit_next > 0:
            self._faults = replace(left, ratelimit_next=left.ratelimit_next - 1)
            raise Unavailable(429, "ratelimited")

    def check_channel(self, channel: str) -> None:
        """Raise SlackError if it is missing or archived, Unavailable if it gets too many messages.

        A channel takes a burst, and then one message a second: `_full` is when it is empty again.
        """
        if channel in self._faults.missing_channels:
            raise SlackError("channel_not_found")
        self.check_archived(channel, "is_archived")
        now = time.monotonic()
        full = max(self._full.get(channel, now), now) + 1
        if self._faults.burst is not None and full - now > self._faults.burst:
            raise Unavailable(429, "ratelimited")
        self._full[channel] = full

    def check_archived(self, channel: str, answer: str) -> None:
        """Raise SlackError with this answer if the channel is archived."""
        if channel in self._faults.archived_channels:
            raise SlackError(answer)
