"""The figures of the overview of a window."""

from dataclasses import replace

import pytest

from dashboard.overview import MEMBERS, Outcome, Pace, Window, bounds, overview
from functions.model.ingestion import State
from functions.model.ingestion_summary import IngestionSummary

NOW = "2026-03-08T12:34:56.000+00:00"


def brief(
    state: State, at: str = "2026-03-08T10:20", took: int = 10, table: str = "a.b"
) -> IngestionSummary:
    """Return an ingestion that landed at a minute and took so many seconds to its final state."""
    begun = IngestionSummary(
        f"{at}{took}", "x.csv", table, state, 5, landed_at=f"{at}:00.000+00:00"
    )
    return replace(begun, ended_at=f"{at}:{took:02}.000+00:00") if begun.ended else begun


def test_each_ingestion_is_counted_once() -> None:
    """Each ingestion counts once in the total, by hour and by table; one in flight is waiting."""
    found = [brief(state) for state in State] + [brief(State.ERRORED, table="")]
    told = overview(found, Window.WEEK)
    assert told.landed == 9
    assert told.outcomes == {
        Outcome.PUBLISHED: 1,
        Outcome.WAITING: 4,
        Outcome.REJECTED: 1,
        Outcome.ERRORED: 2,
        Outcome.IGNORED: 1,
    }
    assert sum(told.by_time.values()) == sum(told.by_table.values()) == 9
    assert told.by_table["", Outcome.ERRORED] == 1


def test_a_settled_failure_counts_as_what_became_of_it() -> None:
    """A discarded or superseded file is an outcome of its own."""
    failed = brief(State.REJECTED)
    settled = [replace(failed, discarded=True), replace(failed, superseded_by="b")]
    told = overview([failed, *settled], Window.WEEK)
    assert told.outcomes == {
        Outcome.REJECTED: 1,
        Outcome.DISCARDED: 1,
        Outcome.SUPERSEDED: 1,
    }


@pytest.mark.parametrize(
    ("window", "bar"),
    [
        (Window.DAY, "2026-03-08T10:00:00+00:00"),
        (Window.WEEK, "2026-03-08T10:00:00+00:00"),
        (Window.MONTH, "2026-03-08T00:00:00+00:00"),
    ],
)
def test_a_bar_is_an_hour_or_a_day(window: Window, bar: str) -> None:
    """A bar is a day for a month, and an hour for a shorter window."""
    told = overview([brief(State.PUBLISHED)], window)
    assert told.by_time == {(bar, Outcome.PUBLISHED): 1}
    assert told.paces == {bar: Pace(10, 10)}


def test_the_window_begins_with_a_whole_bar() -> None:
    """The window begins with a whole bar and ends after now, to include any clock's present."""
    assert bounds(Window.DAY, NOW)[0] == "2026-03-07T12:00:00.000+00:00"
    assert bounds(Window.MONTH, NOW)[0] == "2026-02-06T00:00:00.000+00:00"
    assert bounds(Window.WEEK, NOW)[1] > NOW


def test_the_pace_is_that_of_the_published() -> None:
    """The pace is the median and the 95th percentile of published files only."""
    files = [brief(State.PUBLISHED, took=took) for took in range(1, 21)]
    told = overview([*files, brief(State.REJECTED, took=59)], Window.WEEK)
    assert told.pace == Pace(median=10, slow=19)
    assert overview([brief(State.REJECTED)], Window.WEEK).pace is None


def test_a_batch_is_counted_with_its_tables() -> None:
    """A batch counts in each of its tables, and its members are apart from unclaimed files."""
    batch = replace(brief(State.REJECTED, table="batch"), parts={"a.b": 2, "c.d": 0})
    member = replace(brief(State.IGNORED, table=""), reason_code="BATCH_MEMBER")
    told = overview([batch, member, brief(State.IGNORED, table="")], Window.DAY)
    assert told.by_table == {
        ("a.b", Outcome.REJECTED): 1,
        ("c.d", Outcome.REJECTED): 1,
        (MEMBERS, Outcome.IGNORED): 1,
        ("", Outcome.IGNORED): 1,
    }
    assert told.landed == 3
