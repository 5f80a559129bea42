"""The charts of the quality page."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from dashboard import charts
from dashboard.charts import Span
from dashboard.overview import Window, overview
from dashboard.table import Entry, Ran
from dashboard.views import overview as overview_page
from dashboard.views import table_charts
from functions.model.ingestion import State
from lakegate import times
from tests.unit.dashboard.test_page_overview import brief

_SPAN = Span("2026-03-02T00:00:00.000+00:00", "2026-03-09T00:00:00.000+00:00", timedelta(hours=1))


def rows(drawn: Any) -> list[dict[str, Any]]:
    """Return the rows that a chart is drawn from."""
    return list(drawn.to_dict()["data"]["values"])


def test_the_parts_of_a_bar_lie_upon_each_other() -> None:
    """Failures are at the base of an hour's bar, whose height is the number of landed files."""
    states = [State.PUBLISHED, State.PUBLISHED, State.REJECTED, State.SUBMITTED]
    told = overview([brief(state) for state in states], Window.WEEK)
    drawn = rows(overview_page.landed_chart(told, _SPAN))
    assert [(row["outcome"], row["low"], row["high"]) for row in drawn] == [
        ("rejected", 0, 1),
        ("waiting", 1, 2),
        ("published", 2, 4),
    ]
    assert {row["time"] for row in drawn} == {"2026-03-08T10:00:00.000+00:00"}
    assert all("10:00" < row["end"][11:16] < "11:00" for row in drawn)


def test_a_picture_shows_its_whole_time() -> None:
    """The time axis spans the whole window, however few files landed."""
    told = overview([brief(State.PUBLISHED)], Window.WEEK)
    for drawn in (overview_page.landed_chart(told, _SPAN), overview_page.paces(told, _SPAN)):
        assert _SPAN.since in str(drawn.to_dict())
        assert _SPAN.until in str(drawn.to_dict())


def test_the_rows_of_a_table_are_one_curve() -> None:
    """A table's rows are one curve from before its first commit until now.

    In Vega an order splits an area, and a stack adds up equal times.
    """
    one = Entry("2026-03-08T10:00:00.000+00:00", "m", "h", 3, 10, "i", "")
    drawn = table_charts.rows_over_time([one], _SPAN.until)
    assert [row["rows"] for row in rows(drawn)] == [7, 10, 10]
    area, line = drawn.to_dict()["layer"]
    assert "order" not in area["encoding"]
    assert not area["encoding"]["y"]["stack"]
    assert line["encoding"]["order"]["field"] == "number"


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        (timedelta(minutes=2), "%H:%M:%S"),
        (timedelta(minutes=40), "%H:%M"),
        (timedelta(hours=25), "%H:%M"),
        (timedelta(days=7), "%-d %b"),
        (timedelta(days=300), "%-d %b"),
        (timedelta(days=900), "%b %Y"),
    ],
)
def test_a_time_is_labelled_by_its_length(length: timedelta, shown: str) -> None:
    """All charts label times by the length of the window, and never by half days."""
    since = times.text(datetime.fromisoformat(_SPAN.until) - length)
    first = Entry(since, "m", "h", 3, 10, "i", "")
    for drawn in (
        table_charts.rows_over_time([first], _SPAN.until).to_dict()["layer"][0],
        charts.bars([], "files", Span(since, _SPAN.until, timedelta(hours=1))).to_dict(),
    ):
        assert drawn["encoding"]["x"]["axis"]["format"] == shown


def test_each_check_has_a_row_of_days() -> None:
    """A check's day has its worst result, and the runs in words; failing checks are at the top."""
    day = "2026-03-08T00:00:00+00:00"
    ran = [Ran("a", day, "pass", 5), Ran("b", day, "pass", 5), Ran("b", day, "fail", 1)]
    chart = table_charts.check_history(ran, _SPAN)
    assert [(row["check"], row["result"], row["runs"]) for row in rows(chart)] == [
        ("b", "failed", "1 failed, 5 passed"),
        ("a", "passed", "5 passed"),
    ]
    assert chart.to_dict()["encoding"]["y"]["sort"] == ["b", "a"]
    assert len(set(charts.RESULT_COLOURS.values())) == len(charts.RESULT_WORDS)
