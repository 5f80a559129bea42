"""What came of the files that landed lately: counts, by hour and by table, and how long it took."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from functions.model.ingestion import ALERTED
from functions.model.ingestion_summary import IngestionSummary
from lakegate import times

MEMBERS = "files of batches"  # beside the tables, none of whose names is without a dot
_MOST_ALERTS = 6


class Outcome(StrEnum):
    """What an ingestion came to, in the words and the order of the pictures."""

    PUBLISHED = "published"
    WAITING = "waiting"
    REJECTED = "rejected"
    ERRORED = "errored"
    IGNORED = "ignored"

    @classmethod
    def of(cls, brief: IngestionSummary) -> "Outcome":
        """The outcome of an ingestion as it stands; what has not ended is waiting."""
        return cls(brief.state.value) if brief.ended else cls.WAITING


class Window(StrEnum):
    """How far back the overview goes."""

    DAY = "24 hours"
    WEEK = "7 days"
    MONTH = "30 days"

    @property
    def span(self) -> timedelta:
        """How long it is."""
        return timedelta(days={"24 hours": 1, "7 days": 7, "30 days": 30}[self.value])

    @property
    def step(self) -> timedelta:
        """What one bar of its pictures stands for."""
        return timedelta(days=1) if self is Window.MONTH else timedelta(hours=1)


@dataclass(frozen=True)
class Pace:
    """Seconds from landing to published: half of the files took no longer than `median`, and

    95 of 100 no longer than `slow` (nearest rank).
    """

    median: float
    slow: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> "Pace | None":
        """The pace of some files; None of none."""
        ranked = sorted(seconds)
        if not ranked:
            return None
        return cls(*(ranked[math.ceil(len(ranked) * share) - 1] for share in (0.5, 0.95)))


@dataclass(frozen=True)
class Overview:
    """What landed in a time.

    `by_time` counts by the beginning of an hour or a day (ISO 8601) and outcome, `by_table` by the
    table's name ("" where no contract claims the key): a batch with each of its tables, and what
    comes with one under `MEMBERS`. `pace` is None where nothing was published; `paces` are those of
    what landed in each hour or day.
    """

    landed: int
    outcomes: Mapping[Outcome, int]
    by_time: Mapping[tuple[str, Outcome], int]
    by_table: Mapping[tuple[str, Outcome], int]
    pace: Pace | None
    paces: Mapping[str, Pace]


def bounds(window: Window, now: str) -> tuple[str, str]:
    """From when to before when the window goes: its first bar, an hour or a day, is a whole one.

    It ends a while from now, as clocks differ.
    """
    moment = datetime.fromisoformat(now)
    first = _bar(times.text(moment - window.span), window.step)
    return times.text(datetime.fromisoformat(first)), times.text(moment + timedelta(hours=1))


def overview(briefs: Sequence[IngestionSummary], window: Window) -> Overview:
    """The overview of ingestions that landed within the window."""
    step = window.step
    told = [(brief, Outcome.of(brief), _bar(brief.landed_at, step)) for brief in briefs]
    seconds: dict[str, list[float]] = {}
    for brief, outcome, bar in told:
        if outcome is Outcome.PUBLISHED:
            seconds.setdefault(bar, []).append(_took(brief))
    return Overview(
        landed=len(briefs),
        outcomes=Counter(outcome for _, outcome, _ in told),
        by_time=Counter((bar, outcome) for _, outcome, bar in told),
        by_table=Counter((t, outcome) for brief, outcome, _ in told for t in _tables(brief)),
        pace=Pace.of(each for many in seconds.values() for each in many),
        paces={bar: pace for bar, many in seconds.items() if (pace := Pace.of(many))},
    )


def last_alerts(
    landed: Iterable[IngestionSummary], still_open: Iterable[IngestionSummary]
) -> tuple[IngestionSummary, ...]:
    """Those few that failed last, of what landed lately and of what is open, whenever it landed."""
    failed = {brief.id: brief for brief in (*still_open, *landed) if brief.state in ALERTED}
    latest = sorted(failed.values(), key=lambda brief: brief.ended_at, reverse=True)
    return tuple(latest[:_MOST_ALERTS])


def _tables(brief: IngestionSummary) -> tuple[str, ...]:
    return brief.tables or (MEMBERS if brief.is_member else "",)


def _took(brief: IngestionSummary) -> float:
    """The seconds from landing to the end; clocks that disagree make it no less than none."""
    took = datetime.fromisoformat(brief.ended_at) - datetime.fromisoformat(brief.landed_at)
    return max(0.0, took.total_seconds())


def _bar(time: str, step: timedelta) -> str:
    """The beginning of the hour or day that a time of the ledger lies in."""
    return f"{time[:13]}:00:00+00:00" if step < timedelta(days=1) else f"{time[:10]}T00:00:00+00:00"
