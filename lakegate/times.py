"""Points in time as text."""

from datetime import UTC, datetime


def text(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds: such texts compare as the moments do.

    The ledger and the sweep compare times as text, so every time that they see is written here.
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def second(time: str) -> str:
    """The second of a time that `text` wrote: S3's listings tell no more of it."""
    return time[:19]
