"""A clock that the test controls."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """A clock that advances by a millisecond per reading, so that later events have later times."""

    def __init__(self) -> None:
        self._now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def now(self) -> str:
        """Return the time, ISO 8601 in UTC with milliseconds."""
        self._now += timedelta(milliseconds=1)
        return self._now.isoformat(timespec="milliseconds")

    @property
    def moment(self) -> datetime:
        """Return the time, which does not advance by this."""
        return self._now

    @property
    def at(self) -> float:
        """Return the time in seconds."""
        return self._now.timestamp()

    def pass_(self, seconds: float) -> None:
        """Advance the clock."""
        self._now += timedelta(seconds=seconds)
