"""Points in time as text."""

from datetime import UTC, datetime


def text(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds: such texts compare as the moments do.

    The ledger and the sweep compare times as text, so every time that they see is written here.
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")
