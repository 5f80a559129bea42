"""Read how often a table gets files, from the standard's `slaProperties` (ODCS, "SLA")."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakegate import times
from lakegate.contract.text.fields import Field
from lakegate.text import count

# The standard has days and years; shorter units are ours.
UNITS = {
    **dict.fromkeys(("m", "min", "minute", "minutes"), timedelta(minutes=1)),
    **dict.fromkeys(("h", "hr", "hour", "hours"), timedelta(hours=1)),
    **dict.fromkeys(("d", "day", "days"), timedelta(days=1)),
    **dict.fromkeys(("w", "week", "weeks"), timedelta(weeks=1)),
    **dict.fromkeys(("y", "yr", "year", "years"), timedelta(days=365)),
}
DUE = ("frequency", "freshness")  # without which no file is overdue
LEVELS = (*DUE, "latency")
_LONGEST = timedelta(days=3650)


@dataclass(frozen=True)
class Expected:
    """A table gets a file `every` so often, which may be `late`."""

    every: timedelta
    late: timedelta = timedelta(0)

    @property
    def longest(self) -> timedelta:
        """Return the time after one file at which the next one is overdue."""
        return self.every + self.late

    def due(self, since: str) -> str:
        """Return when the file after the one of a time is overdue; both are ISO 8601 in UTC."""
        return times.text(datetime.fromisoformat(since) + self.longest)

    @property
    def wording(self) -> str:
        """Return it in words: `every 1 day, 4 hours late`."""
        return f"every {_words(self.every)}" + (f", {_words(self.late)} late" if self.late else "")


def read_expected(listed: Field, own: Collection[str]) -> Expected | None:
    """Return how often files are expected, None without `frequency` and `freshness`.

    They come by `frequency`, `latency` later at most; the newest is no older than `freshness`. All
    other service levels describe, and change nothing, nor does one whose `element` begins with none
    of the table's `own` names: it is another table's.
    """
    levels = [item for item in listed.items() if _concerns(item, own)]
    if not any(item.text("property") in DUE for item in levels):
        return None  # a latency alone is often that of queries
    given = dict(_durations(levels))
    longest = given.get("freshness", timedelta.max)
    every = min(given.get("frequency", timedelta.max), longest)
    return Expected(every, min(given.get("latency", timedelta(0)), longest - every))


def _concerns(item: Field, own: Collection[str]) -> bool:
    elements = [f"{element.strip()}." for element in item.text("element").split(",")]
    given = item.has("element")
    return not given or any(each.startswith(f"{name}.") for each in elements for name in own)


def _durations(levels: Iterable[Field]) -> Iterator[tuple[str, timedelta]]:
    for item in levels:
        if (name := item.text("property")) in LEVELS:
            yield name, _duration(item)


def _duration(item: Field) -> timedelta:
    unit = item.text("unit", "d")
    number = item.at("value").number(lambda value: value > 0, "must be a number above 0")
    if number is None:
        return _LONGEST
    if unit not in UNITS:
        item.refuse(f"{unit!r} is no unit of time: use m, h, d, w or y", "unit")
    elif number > _LONGEST / UNITS[unit]:
        item.refuse("is longer than ten years", "value")
    else:
        return float(number) * UNITS[unit]
    return _LONGEST


def _words(time: timedelta) -> str:
    """Return a time in its largest whole unit: `1 day`, `90 minutes`."""
    units = {"week": timedelta(weeks=1), "day": timedelta(days=1), "hour": timedelta(hours=1)}
    for name, unit in units.items():
        if time >= unit and not time % unit:
            return count(time // unit, name)
    return count(max(1, round(time / timedelta(minutes=1))), "minute")
