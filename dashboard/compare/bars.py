"""Draw a comparison: main is a broad pale bar, the new file a narrow dark one on top of it.

Their shapes differ, not only their colours.
"""

from collections.abc import Mapping
from typing import Any

import altair as alt

from dashboard import charts
from dashboard.compare.figures import (
    Kind,
    Picture,
)

FILE, MAIN = charts.BLUE, charts.GREY
_HEIGHT, _STEP = 130, 20
_UPRIGHT = alt.Axis(labelAngle=0, labelOverlap="greedy", ticks=False)
_SHARE: dict[str, Any] = {
    "shorthand": "share:Q",
    "axis": alt.Axis(format="%", tickCount=3, domain=False, ticks=False),
    "title": None,
}


def picture(drawn: Picture, names: tuple[str, str]) -> alt.LayerChart | alt.FacetChart:
    """Return the shares of both sides in the same bins, or of the same values.

    `names` are those of the file's side and of main's.
    """
    words = drawn.kind is Kind.WORDS
    labels = list(drawn.labels) if words else _filled(drawn)
    file, main = (dict(zip(drawn.labels, side, strict=False)) for side in (drawn.file, drawn.main))
    layers = [
        _bars(main, names[1], labels, words=words, breadth=0.9, color=MAIN, opacity=0.4),
        _bars(file, names[0], labels, words=words, breadth=0.4, color=FILE, opacity=1.0),
    ]
    return alt.layer(*layers).properties(height=alt.Step(_STEP) if words else _HEIGHT)


def _bars(
    shares: Mapping[str, float],
    name: str,
    labels: list[str],
    *,
    words: bool,
    breadth: float,
    **look: Any,
) -> alt.Chart:
    """Return bins side by side, or words one below the other, which leaves room for their texts."""
    rows = [{"value": label, "side": name, "share": shares.get(label, 0)} for label in labels]
    axis = alt.Axis(labelLimit=170, ticks=False, domain=False) if words else _UPRIGHT
    values = {"shorthand": "value:N", "sort": labels, "title": None, "axis": axis}
    x, y = (_SHARE, values) if words else (values, _SHARE)
    look["height" if words else "width"] = {"band": breadth}
    return (
        charts.chart(rows)
        .mark_bar(cornerRadius=1, **look)
        .encode(
            x=alt.X(**x),
            y=alt.Y(**y),
            tooltip=["value:N", "side:N", alt.Tooltip("share:Q", format=".1%")],
        )
    )


def _filled(drawn: Picture) -> list[str]:
    """Return the bins without empty ones for outside values."""
    sides = [shares for shares in (drawn.file, drawn.main) if shares]
    last = len(drawn.labels) - 1
    return [
        label
        for number, label in enumerate(drawn.labels)
        if 0 < number < last or any(shares[number] for shares in sides)
    ]
