"""Points in time as text."""

from datetime import UTC, datetime


def text(moment: datetime) -> str:
    """Return a time as ISO 8601 in UTC with milliseconds: such texts compare as the times do.

    The ledger and the sweep compare times as text, so every time that they read is written here.
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def second(time: str) -> str:
    """Return the second of a time that `text` wrote: S3's listings have no finer time."""
    return time[:19]
