"""Parts of all charts: bars over time, whole numbers, the colours of results."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import altair as alt
import streamlit as st

from lakegate import times
from lakegate.audit.report import Status

# Colours of the page, light and dark, and those of the outcomes. The first five suit
# colour-blind readers (Okabe and Ito, "Color Universal Design"); all contrast with both backgrounds
# by at least 3 to 1 (WCAG 2.2, 1.4.11).
GREEN, ORANGE, PINK, BLUE, GREY = "#0c9b78", "#d55e00", "#c0609c", "#3987c9", "#868c95"
BROWN, SLATE = "#9a7b4f", "#6b7fa3"

_SHARED = {
    "greenColor": GREEN,
    "orangeColor": ORANGE,
    "blueColor": BLUE,
    "grayColor": GREY,
    "baseRadius": "0.5rem",
}
_LIGHT = {
    "backgroundColor": "#ffffff",
    "secondaryBackgroundColor": "#f5f6f8",
    "textColor": "#0d131c",  # Streamlit makes captions paler: 4.5 to 1 is left
    "primaryColor": "#1f639f",
    "linkColor": "#1f639f",
    "codeTextColor": "#1c2430",
    "codeBackgroundColor": "#f0f2f5",
    "borderColor": "#dde1e7",
}
_DARK = {
    "backgroundColor": "#12161c",
    "secondaryBackgroundColor": "#1b212a",
    "textColor": "#e7eaee",
    "primaryColor": "#7db8ea",
    "linkColor": "#7db8ea",
    "codeTextColor": "#e7eaee",
    "codeBackgroundColor": "#232a35",
    "borderColor": "#313a47",
}


def theme() -> Mapping[str, str]:
    """Return Streamlit's options of both themes; the reader's system chooses one."""
    kinds = {"light": _LIGHT, "dark": _DARK}
    return {
        f"theme.{kind}.{name}": value
        for kind, colours in kinds.items()
        for name, value in {**_SHARED, **colours}.items()
    } | {
        "theme.metricValueFontSize": "1.6rem",
        "theme.paddingTop": "1rem",
        "theme.headingFontSizes": '["1.9rem", "1.35rem", "1.1rem"]',
    }


RESULT_COLOURS = {
    Status.FAIL: ORANGE,
    Status.ERROR: PINK,
    Status.WARN: BLUE,
    Status.PASS: GREEN,
    Status.SKIPPED: GREY,
}
RESULT_WORDS = {
    Status.FAIL: "failed",
    Status.ERROR: "not evaluated",
    Status.WARN: "warning",
    Status.PASS: "passed",
    Status.SKIPPED: "skipped",
}
_FILLED = 0.84  # of a bar's place
# The label format up to each length of time, and the number of labels, so that none repeats.
_TICKS: Sequence[tuple[timedelta, str, Any]] = (
    (timedelta(minutes=7), "%H:%M:%S", 5),
    (timedelta(hours=30), "%H:%M", 7),
    (timedelta(days=8), "%-d %b", "day"),
    (timedelta(days=400), "%-d %b", 7),
    (timedelta.max, "%b %Y", 7),
)


@dataclass(frozen=True)
class Span:
    """The time of a chart, from `since` to `until`, and the length of one `step`."""

    since: str
    until: str
    step: timedelta

    def bar(self, begin: str) -> dict[str, str]:
        """Return the bar of the step that begins then: its start, its end and its middle."""
        first = datetime.fromisoformat(begin)
        ends = {"time": 0.0, "end": _FILLED, "middle": _FILLED / 2}
        return {name: times.text(first + self.step * share) for name, share in ends.items()}

    def axis(self, field: str) -> alt.X:
        """Return an axis of the whole span, even if most of it is empty."""
        return time_axis(field, self.since, self.until)


def time_axis(field: str, since: str, until: str) -> alt.X:
    """Return an axis of the time from `since` to `until`, in UTC."""
    length = datetime.fromisoformat(until) - datetime.fromisoformat(since)
    shown, ticks = next(how for most, *how in _TICKS if length <= most)
    scale = alt.Scale(type="utc", domain=[since, until], nice=False)
    axis = alt.Axis(grid=False, labelOverlap=True, tickCount=ticks, format=shown)
    return alt.X(f"{field}:T", scale=scale, title=None, axis=axis)


def bars(parts: Sequence[Mapping[str, Any]], what: str, span: Span) -> alt.Chart:
    """Return bars over time, each of stacked parts in their order.

    A part has the start of its bar (`begin`), the field of its colour, and a count (`many`). Vega
    cannot stack bars that begin and end at times, so this function does.
    """
    heights: Counter[str] = Counter()
    rows = []
    for part in parts:
        begin, low = part["begin"], heights[part["begin"]]
        heights[begin] += part["many"]
        rows.append({**part, **span.bar(begin), "low": low, "high": heights[begin]})
    return (
        chart(rows)
        .mark_rect()
        .encode(
            x=span.axis("time"),
            x2="end:T",
            y=alt.Y("low:Q", title=what, axis=whole_numbers()),
            y2="high:Q",
        )
    )


def chart(rows: Sequence[Mapping[str, Any]]) -> alt.Chart:
    """Return a chart of rows."""
    return alt.Chart(alt.Data(values=list(rows)))


def draw(chart: alt.Chart | alt.LayerChart | alt.FacetChart, alt: str) -> None:
    """Show a chart, labelled in the colour of texts: that of Streamlit's own theme is too pale."""
    st.altair_chart(chart, theme=None, alt=alt)


def time() -> alt.Tooltip:
    """Return a tooltip with a time."""
    return alt.Tooltip("time:T", title="from, UTC", format="%-d %b %H:%M", formatType="utc")


def number(field: str, title: str = "") -> alt.Tooltip:
    """Return a tooltip with a count."""
    return alt.Tooltip(f"{field}:Q", title=title or field, format=",")


def whole_numbers() -> alt.Axis:
    """Return an axis of counts."""
    return alt.Axis(format=",d", tickMinStep=1, tickCount=5)


def colour(
    field: str, colours: Mapping[Any, str], there: Collection[str], *, legend: bool = True
) -> alt.Color:
    """Return the colours of a field's values that occur, with a legend that fits a phone."""
    shown = {value: colour for value, colour in colours.items() if value in there}
    scale = alt.Scale(domain=list(shown), range=list(shown.values()))
    shape = alt.Legend(title=None, orient="top", columns=3) if legend else None
    return alt.Color(f"{field}:N", scale=scale, legend=shape)


def by_result(there: Collection[Status]) -> alt.Color:
    """Return the colours of the results that occur."""
    colours = {RESULT_WORDS[status]: colour for status, colour in RESULT_COLOURS.items()}
    return colour("result", colours, {RESULT_WORDS[status] for status in there})
