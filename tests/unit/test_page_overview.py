"""What the overview makes of the ingestions of a time."""

from dataclasses import replace

import pytest

from dashboard.overview import Outcome, Pace, Window, bounds, overview
from functions.brief import Brief
from functions.ingestion import State

NOW = "2026-03-08T12:34:56.000+00:00"


def brief(state: State, at: str = "2026-03-08T10:20", took: int = 10, table: str = "a.b") -> Brief:
    """An ingestion that landed at a minute, and took so many seconds where it ended."""
    begun = Brief(f"{at}{took}", "x.csv", table, state, 5, landed_at=f"{at}:00.000+00:00")
    return replace(begun, ended_at=f"{at}:{took:02}.000+00:00") if begun.ended else begun


def test_each_ingestion_is_counted_once() -> None:
    """Whatever has not ended is waiting; the sums of hours and of tables are those of all."""
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


@pytest.mark.parametrize(
    ("window", "bar"),
    [
        (Window.DAY, "2026-03-08T10:00:00+00:00"),
        (Window.WEEK, "2026-03-08T10:00:00+00:00"),
        (Window.MONTH, "2026-03-08T00:00:00+00:00"),
    ],
)
def test_a_bar_is_an_hour_or_a_day(window: Window, bar: str) -> None:
    """A month is told by days, what is shorter by hours."""
    told = overview([brief(State.PUBLISHED)], window)
    assert told.by_time == {(bar, Outcome.PUBLISHED): 1}
    assert told.paces == {bar: Pace(10, 10)}


def test_the_window_begins_with_a_whole_bar() -> None:
    """The first hour or day is not cut, and what lands just now, by any clock, is in."""
    assert bounds(Window.DAY, NOW)[0] == "2026-03-07T13:00:00.000+00:00"
    assert bounds(Window.MONTH, NOW)[0] == "2026-02-07T00:00:00.000+00:00"
    assert bounds(Window.WEEK, NOW)[1] > NOW


def test_the_pace_is_that_of_the_published() -> None:
    """Half were no slower than the median, 95 of 100 no slower than the other; failures aside."""
    files = [brief(State.PUBLISHED, took=took) for took in range(1, 21)]
    told = overview([*files, brief(State.REJECTED, took=59)], Window.WEEK)
    assert told.pace == Pace(median=10, slow=19)
    assert overview([brief(State.REJECTED)], Window.WEEK).pace is None


def test_the_last_alerts_come_first() -> None:
    """Of what failed, those few are shown that ended last."""
    failed = [brief(State.REJECTED, f"2026-03-08T10:{minute}") for minute in range(10, 30)]
    told = overview([brief(State.PUBLISHED), *failed], Window.WEEK)
    assert [each.landed_at[14:16] for each in told.alerts] == ["29", "28", "27", "26", "25", "24"]
