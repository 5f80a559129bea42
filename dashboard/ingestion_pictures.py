"""The pictures of one ingestion."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import altair as alt

from dashboard import axes, look
from dashboard.timeline import Step
from dashboard.words import duration
from lakegate.report import CheckResult


def checks(results: Sequence[CheckResult]) -> alt.Chart:
    """How many checks ended in which way, as one bar."""
    many = Counter(check.status for check in results)
    rows = [
        {"result": axes.RESULT_WORDS[status], "checks": many[status], "order": number}
        for number, status in enumerate(axes.RESULT_COLOURS)
        if many[status]
    ]
    return (
        axes.chart(rows)
        .mark_bar(height=18)
        .encode(
            x=alt.X("checks:Q", stack="normalize", axis=None),
            color=axes.by_result(many),
            order="order:Q",
            tooltip=["result:N", axes.number("checks")],
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
    order = [step.phase for step in steps[1:]]
    return (
        axes.chart(rows)
        .mark_bar(color=look.BLUE, cornerRadius=2)
        .encode(
            x=alt.X("from:Q", title="seconds since it landed", axis=alt.Axis(tickCount=6)),
            x2="to:Q",
            y=alt.Y("phase:N", sort=order, title=None, axis=alt.Axis(labelLimit=140)),
            tooltip=["phase:N", alt.Tooltip("took:N")],
        )
        .properties(height=alt.Step(24))
    )
