"""The page's pictures: values in, charts out."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import altair as alt

from dashboard import look
from dashboard.overview import Outcome, Overview, Window
from dashboard.table import Entry, Ran
from dashboard.timeline import Step
from dashboard.words import duration
from lakegate.report import CheckResult, Status

_COLOURS = {
    Outcome.REJECTED: look.ORANGE,
    Outcome.ERRORED: look.PINK,
    Outcome.WAITING: look.BLUE,
    Outcome.PUBLISHED: look.GREEN,
    Outcome.IGNORED: look.GREY,
}
_CHECK_COLOURS = {
    Status.FAIL: look.ORANGE,
    Status.ERROR: look.PINK,
    Status.WARN: look.BLUE,
    Status.PASS: look.GREEN,
    Status.SKIPPED: look.GREY,
}
_CHECK_WORDS = {
    Status.FAIL: "failed",
    Status.ERROR: "not evaluated",
    Status.WARN: "warning",
    Status.PASS: "passed",
    Status.SKIPPED: "skipped",
}
_MOST_TABLES = 12
_UTC = alt.Scale(type="utc")


def landed(found: Overview, window: Window) -> alt.Chart:
    """What landed, by hour or day, in the colours of its outcome."""
    rows = [
        {"time": time, "outcome": outcome, "files": many, "order": _order(outcome)}
        for (time, outcome), many in found.by_time.items()
    ]
    unit: Any = "utcyearmonthdate" if window is Window.MONTH else "utcyearmonthdatehours"
    return (
        _chart(rows)
        .mark_bar()
        .encode(
            x=alt.X("time:T", timeUnit=unit, title=None, axis=_time_axis(window)),
            y=alt.Y("files:Q", title="files", axis=_whole_numbers()),
            color=_by_outcome(outcome for _, outcome in found.by_time),
            order="order:Q",
            tooltip=[_time(), "outcome:N", alt.Tooltip("files:Q", format=",")],
        )
        .properties(height=240)
    )


def by_table(found: Overview) -> alt.Chart:
    """What landed, by table, the busiest tables first."""
    totals: dict[str, int] = {}
    for (table, _), many in found.by_table.items():
        totals[table] = totals.get(table, 0) + many
    most = sorted(totals, key=lambda table: -totals[table])[:_MOST_TABLES]
    rows = [
        {"table": table or "no table", "outcome": outcome, "files": many, "order": _order(outcome)}
        for (table, outcome), many in found.by_table.items()
        if table in most
    ]
    names = [table or "no table" for table in most]
    return (
        _chart(rows)
        .mark_bar()
        .encode(
            x=alt.X("files:Q", title="files", axis=_whole_numbers()),
            y=alt.Y("table:N", title=None, sort=names, axis=alt.Axis(labelLimit=160)),
            color=_by_outcome((outcome for _, outcome in found.by_table), legend=False),
            order="order:Q",
            tooltip=["table:N", "outcome:N", alt.Tooltip("files:Q", format=",")],
        )
        .properties(height=alt.Step(26))
    )


def paces(found: Overview, window: Window) -> alt.LayerChart | alt.FacetChart:
    """Seconds from landing to published, by hour or day: the median, and up to 95 of 100 files."""
    rows = [
        {"time": time, "median": pace.median, "slow": pace.slow}
        for time, pace in sorted(found.paces.items())
    ]
    base = _chart(rows).encode(
        x=alt.X("time:T", scale=_UTC, title=None, axis=_time_axis(window)),
        tooltip=[
            _time(),
            alt.Tooltip("median:Q", title="median, s", format=",.1f"),
            alt.Tooltip("slow:Q", title="95 of 100, s", format=",.1f"),
        ],
    )
    seconds = alt.Y("median:Q", title="seconds")
    return alt.layer(
        base.mark_bar(color=look.BLUE, opacity=0.3, width=4).encode(y=seconds, y2="slow:Q"),
        base.mark_line(color=look.BLUE, point={"size": 28, "color": look.BLUE}).encode(y=seconds),
    ).properties(height=180)


def checks(results: Sequence[CheckResult]) -> alt.Chart:
    """How many checks ended in which way, as one bar."""
    many = Counter(check.status for check in results)
    shown = [status for status in _CHECK_COLOURS if many[status]]
    rows = [
        {"result": _CHECK_WORDS[status], "checks": many[status], "order": number}
        for number, status in enumerate(shown)
    ]
    return (
        _chart(rows)
        .mark_bar(height=18)
        .encode(
            x=alt.X("checks:Q", stack="normalize", axis=None),
            color=_by_result(shown),
            order="order:Q",
            tooltip=["result:N", alt.Tooltip("checks:Q", format=",")],
        )
        .properties(height=84)
    )


def way(steps: Sequence[Step]) -> alt.Chart:
    """The phases between the steps, one under the other, as long as each of them took."""
    first = datetime.fromisoformat(steps[0].at)
    rows = [
        {
            "phase": step.phase,
            "from": (datetime.fromisoformat(step.began) - first).total_seconds(),
            "to": (datetime.fromisoformat(step.at) - first).total_seconds(),
            "took": duration(step.seconds),
        }
        for step in steps[1:]
    ]
    return (
        _chart(rows)
        .mark_bar(color=look.BLUE, cornerRadius=2, minBandSize=4)
        .encode(
            x=alt.X("from:Q", title="seconds since it landed", axis=alt.Axis(tickCount=6)),
            x2="to:Q",
            y=alt.Y("phase:N", sort=[step.phase for step in steps[1:]], title=None),
            tooltip=["phase:N", alt.Tooltip("took:N")],
        )
        .properties(height=alt.Step(24))
    )


def rows_over_time(entries: Sequence[Entry]) -> alt.Chart:
    """How many rows a table had after each of its commits."""
    rows = [{"time": e.at, "rows": e.after, "added": e.added, "what": e.message} for e in entries]
    return (
        _chart(rows)
        .mark_area(
            interpolate="step-after",
            color=look.GREEN,
            opacity=0.25,
            line={"color": look.GREEN, "interpolate": "step-after"},
            point={"color": look.GREEN, "size": 30},
        )
        .encode(
            x=alt.X("time:T", scale=_UTC, title=None, axis=alt.Axis(grid=False, tickCount=6)),
            y=alt.Y("rows:Q", title="rows", axis=alt.Axis(format="~s", tickCount=5)),
            tooltip=[
                _time(),
                alt.Tooltip("rows:Q", format=","),
                alt.Tooltip("added:Q", format="+,"),
                "what:N",
            ],
        )
        .properties(height=240)
    )


def checks_by_day(ran: Sequence[Ran]) -> alt.Chart:
    """How the checks of a table's runs ended, by day."""
    rows = [
        {
            "time": each.day,
            "result": _CHECK_WORDS[Status(each.status)],
            "checks": each.checks,
            "order": list(_CHECK_COLOURS).index(Status(each.status)),
        }
        for each in ran
    ]
    there = {Status(each.status) for each in ran}
    return (
        _chart(rows)
        .mark_bar()
        .encode(
            x=alt.X(
                "time:T", timeUnit="utcyearmonthdate", title=None, axis=_time_axis(Window.MONTH)
            ),
            y=alt.Y("checks:Q", title="checks", axis=_whole_numbers()),
            color=_by_result(there),
            order="order:Q",
            tooltip=[_time(), "result:N", alt.Tooltip("checks:Q", format=",")],
        )
        .properties(height=200)
    )


def _by_result(there: Collection[Status]) -> alt.Color:
    shown = [status for status in _CHECK_COLOURS if status in there]
    scale = alt.Scale(
        domain=[_CHECK_WORDS[status] for status in shown],
        range=[_CHECK_COLOURS[status] for status in shown],
    )
    return alt.Color(
        "result:N", scale=scale, legend=alt.Legend(title=None, orient="top", columns=3)
    )


def _chart(rows: Sequence[Mapping[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.Data(values=list(rows)))


def _by_outcome(found: Iterable[Outcome], *, legend: bool = True) -> alt.Color:
    """The colours of those outcomes that there are, in their own order."""
    there = set(found)
    shown = [outcome for outcome in _COLOURS if outcome in there]
    return alt.Color(
        "outcome:N",
        scale=alt.Scale(domain=shown, range=[_COLOURS[outcome] for outcome in shown]),
        legend=alt.Legend(title=None, orient="top", columns=3) if legend else None,
    )


def _order(outcome: Outcome) -> int:
    """What failed lies at the base of a bar, where also a little is seen and compared."""
    return list(_COLOURS).index(outcome)


def _time() -> alt.Tooltip:
    return alt.Tooltip("time:T", title="from, UTC", format="%-d %b %H:%M", formatType="utc")


def _time_axis(window: Window) -> alt.Axis:
    shown = "%H:%M" if window is Window.DAY else "%-d %b"
    return alt.Axis(grid=False, labelOverlap=True, tickCount=7, format=shown)


def _whole_numbers() -> alt.Axis:
    return alt.Axis(format=",d", tickMinStep=1, tickCount=5)
