"""The faults of the Slack stand-in, which `PUT /_control` sets."""

import time
from dataclasses import dataclass
from typing import Any


class SlackError(Exception):
    """A call that Slack refuses with this error code; `more` goes into the answer."""

    def __init__(self, code: str, status: int = 200, **more: Any) -> None:
        super().__init__(code)
        self.answer = {"ok": False, "error": code, **more}
        self.status = status
        self.headers: dict[str, str] = {}


@dataclass
class Faults:
    """The faults that are left."""

    fail_next: int = 0
    away_seconds: float = 0
    ratelimit_next: int = 0
    retry_after: int = 1
    missing_channels: tuple[str, ...] = ()
    archived_channels: tuple[str, ...] = ()
    sends_again: int = 0
    app_seconds: float = 3

    def __post_init__(self) -> None:
        self._away_until = time.monotonic() + self.away_seconds

    def check_call(self) -> None:
        """Raise SlackError if this call is to fail for now."""
        if self.fail_next > 0 or time.monotonic() < self._away_until:
            self.fail_next -= 1
            raise SlackError("service_unavailable", 503)
        if self.ratelimit_next > 0:
            self.ratelimit_next -= 1
            limited = SlackError("ratelimited", 429)
            limited.headers["Retry-After"] = str(self.retry_after)
            raise limited

    def check_channel(self, channel: str) -> None:
        """Raise SlackError if it is missing or archived."""
        if channel in self.missing_channels:
            raise SlackError("channel_not_found")
        self.check_archived(channel, "is_archived")

    def check_archived(self, channel: str, answer: str) -> None:
        """Raise SlackError with this answer if the channel is archived."""
        if channel in self.archived_channels:
            raise SlackError(answer)
