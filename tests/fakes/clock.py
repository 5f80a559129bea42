"""The time, as a test tells it."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """A clock that moves by a millisecond a look, so that what came later is later."""

    def __init__(self) -> None:
        self._now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def now(self) -> str:
        """The time, ISO 8601 in UTC with milliseconds."""
        self._now += timedelta(milliseconds=1)
        return self._now.isoformat(timespec="milliseconds")

    def pass_(self, seconds: float) -> None:
        """Let time pass."""
        self._now += timedelta(seconds=seconds)
