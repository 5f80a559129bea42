"""Outcomes of files that landed lately: counts, by hour and by table, and durations."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from functions.model.ingestion import ALERTED, State
from functions.model.ingestion_summary import IngestionSummary
from functions.model.shown_state import ShownState
from lakegate import times
from lakegate.times import seconds

MEMBERS = "files of batches"  # beside the tables, none of whose names is without a dot


class Outcome(StrEnum):
    """The outcome of an ingestion, in the words and the order of the charts."""

    PUBLISHED = "published"
    WAITING = "waiting"
    REJECTED = "rejected"
    ERRORED = "errored"
    IGNORED = "ignored"
    DISCARDED = "discarded"
    SUPERSEDED = "superseded"

    @classmethod
    def of(cls, brief: IngestionSummary) -> "Outcome":
        """Return the outcome of an ingestion; without a final state it is waiting."""
        return cls(ShownState.of(brief).value) if brief.ended else cls.WAITING


class Window(StrEnum):
    """The time window of the overview."""

    DAY = "24 hours"
    WEEK = "7 days"
    MONTH = "30 days"

    @property
    def span(self) -> timedelta:
        """Return its length."""
        return timedelta(days={"24 hours": 1, "7 days": 7, "30 days": 30}[self.value])

    @property
    def step(self) -> timedelta:
        """Return the time of one bar in its charts."""
        return timedelta(days=1) if self is Window.MONTH else timedelta(hours=1)


@dataclass(frozen=True)
class Pace:
    """Seconds from landing to publishing: `median`, and `slow`, the 95th percentile.

    Percentiles are by nearest rank.
    """

    median: float
    slow: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> "Pace | None":
        """Return the pace of some files; None without files."""
        ranked = sorted(seconds)
        if not ranked:
            return None
        return cls(*(ranked[math.ceil(len(ranked) * share) - 1] for share in (0.5, 0.95)))


@dataclass(frozen=True)
class Overview:
    """Files that landed within a window.

    `by_time` counts by the start of an hour or a day (ISO 8601) and outcome, `by_table` by the
    table's name ("" for a key without a contract): a batch with each of its tables, and files in
    its folder under `MEMBERS`. `pace` is None if nothing was published; `paces` are those of each
    hour or day.
    """

    landed: int
    outcomes: Mapping[Outcome, int]
    by_time: Mapping[tuple[str, Outcome], int]
    by_table: Mapping[tuple[str, Outcome], int]
    pace: Pace | None
    paces: Mapping[str, Pace]


def bounds(window: Window, now: str) -> tuple[str, str]:
    """Return the window's start and end; its first bar, an hour or a day, is a full one.

    The end lies a little in the future, as clocks differ.
    """
    moment = datetime.fromisoformat(now)
    first = _bar(times.text(moment - window.span), window.step)
    return times.text(datetime.fromisoformat(first)), times.text(moment + timedelta(hours=1))


def overview(briefs: Sequence[IngestionSummary], window: Window) -> Overview:
    """Return the overview of ingestions that landed within the window."""
    step = window.step
    counted = [(brief, Outcome.of(brief), _bar(brief.landed_at, step)) for brief in briefs]
    took: dict[str, list[float]] = {}
    for brief, outcome, bar in counted:
        if outcome is Outcome.PUBLISHED:
            took.setdefault(bar, []).append(seconds(brief.landed_at, brief.ended_at))
    return Overview(
        landed=len(briefs),
        outcomes=Counter(outcome for _, outcome, _ in counted),
        by_time=Counter((bar, outcome) for _, outcome, bar in counted),
        by_table=Counter((t, outcome) for brief, outcome, _ in counted for t in _tables(brief)),
        pace=Pace.of(each for many in took.values() for each in many),
        paces={bar: pace for bar, many in took.items() if (pace := Pace.of(many))},
    )


@dataclass(frozen=True)
class Lately:
    """What landed for a table within a window: when the last file did, and how many a day.

    `passed` of `judged` files were published, and `waiting` ones need a decision.
    """

    last: str
    judged: int
    passed: int
    waiting: int
    by_day: tuple[int, ...]


def lately(briefs: Iterable[IngestionSummary], since: str, days: int) -> Mapping[str, Lately]:
    """Return what landed for each table in so many days, of ingestions newest first."""
    by_table: dict[str, list[IngestionSummary]] = {}
    for brief in briefs:
        for table in brief.tables:
            by_table.setdefault(table, []).append(brief)
    first = datetime.fromisoformat(since)
    names = [times.text(first + timedelta(days=day))[:10] for day in range(days)]
    return {table: _lately(many, names) for table, many in by_table.items()}


def _lately(briefs: Sequence[IngestionSummary], days: Sequence[str]) -> Lately:
    landed = Counter(brief.landed_at[:10] for brief in briefs)
    ended = Counter(brief.state for brief in briefs)
    return Lately(
        last=briefs[0].landed_at,
        judged=sum(ended[state] for state in (State.PUBLISHED, *ALERTED)),
        passed=sum(b.state is State.PUBLISHED and not b.approved_by for b in briefs),
        waiting=sum(brief.is_open for brief in briefs),
        by_day=tuple(landed[day] for day in days),
    )


def _tables(brief: IngestionSummary) -> tuple[str, ...]:
    return brief.tables or (MEMBERS if brief.is_member else "",)


def _bar(time: str, step: timedelta) -> str:
    """Return the start of the hour or day of a time of the ledger."""
    return f"{time[:13]}:00:00+00:00" if step < timedelta(days=1) else f"{time[:10]}T00:00:00+00:00"
