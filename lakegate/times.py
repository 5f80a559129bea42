"""Points in time and durations as text."""

from datetime import UTC, datetime, timedelta


def text(moment: datetime) -> str:
    """Return a time as ISO 8601 in UTC with milliseconds: such texts compare as the times do.

    The ledger and the sweep compare times as text, so every time that they read is written here.
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def earlier(time: str, by: timedelta) -> str:
    """Return the time so much earlier, both as `text` writes them."""
    return text(datetime.fromisoformat(time) - by)


def moment(time: str) -> str:
    """Return a time of the ledger: `22 Nov 2026, 01:40:12 UTC`; "" for none."""
    return f"{datetime.fromisoformat(time):%-d %b %Y, %H:%M:%S} UTC" if time else ""


def second(time: str) -> str:
    """Return the second of a time that `text` wrote: S3's listings have no finer time."""
    return time[:19]


def seconds(begin: str, end: str) -> float:
    """Return the seconds between two times of the ledger; at least 0, as clocks may disagree."""
    gone = datetime.fromisoformat(end) - datetime.fromisoformat(begin)
    return max(0.0, gone.total_seconds())


def duration(seconds: float, parts: int = 2) -> str:
    """Return a duration as `0.4 s`, `3 min 12 s`, `2 d 4 h`: its largest `parts` units."""
    if seconds < 59.95:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    whole = timedelta(seconds=round(seconds))
    hours, rest = divmod(whole.seconds, 3600)
    minutes, left = divmod(rest, 60)
    units = [(whole.days, "d"), (hours, "h"), (minutes, "min"), (left, "s")]
    while units[0][0] == 0:
        units.pop(0)
    return " ".join(f"{many:,} {unit}" for many, unit in units[:parts] if many)
