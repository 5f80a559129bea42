"""Pictures of a comparison: values in, charts out.

Main is a broad pale bar, the new file a narrow dark one upon it: they are told apart by their
shapes, not by colours alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt

from dashboard import look
from dashboard.comparison_figures import Picture
from dashboard.comparison_kinds import Kind

_HEIGHT, _STEP = 130, 20


@dataclass(frozen=True)
class _Look:
    """How one side's bars look: their colour, how dense it is, their share of the room."""

    colour: str
    opacity: float
    breadth: float


FILE, MAIN = look.BLUE, look.GREY
_MAIN, _FILE = _Look(MAIN, 0.4, 0.9), _Look(FILE, 1.0, 0.4)


def picture(found: Picture, names: tuple[str, str]) -> alt.LayerChart | alt.FacetChart:
    """The shares of both sides in the same bins, or of the same values.

    `names` are those of the file's side and of main's.
    """
    words = found.kind is Kind.WORDS
    labels = list(found.labels) if words else _filled(found)
    layers = [
        _bars(dict(zip(found.labels, shares, strict=False)), name, labels, look_, words=words)
        for name, shares, look_ in ((names[1], found.main, _MAIN), (names[0], found.file, _FILE))
    ]
    return alt.layer(*layers).properties(height=alt.Step(_STEP) if words else _HEIGHT)


def _bars(
    shares: Mapping[str, float], name: str, labels: list[str], look_: _Look, *, words: bool
) -> alt.Chart:
    rows = [{"value": label, "side": name, "share": shares.get(label, 0)} for label in labels]
    across: Any = {"height" if words else "width": {"band": look_.breadth}}
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(opacity=look_.opacity, color=look_.colour, cornerRadius=1, **across)
        .encode(
            **(_from_the_left(labels) if words else _upright(labels)),
            tooltip=["value:N", "side:N", alt.Tooltip("share:Q", format=".1%")],
        )
    )


def _upright(labels: list[str]) -> dict[str, Any]:
    """Bins side by side."""
    axis = alt.Axis(labelAngle=0, labelOverlap="greedy", ticks=False)
    return {"x": alt.X("value:N", sort=labels, axis=axis, title=None), "y": alt.Y(**_SHARE)}


def _from_the_left(labels: list[str]) -> dict[str, Any]:
    """Values one below the other, which leaves room for their texts."""
    axis = alt.Axis(labelLimit=170, ticks=False, domain=False)
    return {"x": alt.X(**_SHARE), "y": alt.Y("value:N", sort=labels, axis=axis, title=None)}


_SHARE: dict[str, Any] = {
    "shorthand": "share:Q",
    "axis": alt.Axis(format="%", tickCount=3, domain=False, ticks=False),
    "title": None,
}


def _filled(found: Picture) -> list[str]:
    """The bins without an empty one at either end, beyond which nothing lies."""
    sides = [shares for shares in (found.file, found.main) if shares]
    last = len(found.labels) - 1
    return [
        label
        for number, label in enumerate(found.labels)
        if 0 < number < last or any(shares[number] for shares in sides)
    ]
