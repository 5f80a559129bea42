"""Write a comparison's figures in words, and as the HTML of small tables. Pure.

Foreign text is escaped, and brought to one line without acting characters.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import altair as alt

from dashboard import charts
from dashboard.compare.figures import (
    Column,
    Comparison,
    Figure,
    Kind,
    Origin,
    Picture,
    Profile,
    Side,
)
from dashboard.formatting import count
from lakegate.text import one_line

_ROUGH = (Origin.SAMPLE, Origin.ESTIMATE)
_NONE = "–"  # noqa: RUF001 - a dash where there is nothing


def stands_on(found: Comparison, names: tuple[str, str]) -> str:
    """Return the basis of both sides' figures, one sentence each."""
    if not found.main:
        return f"{_read(found.file, names[0])} Main has no such table yet."
    return f"{_read(found.file, names[0])} {_read(found.main, names[1])}"


def colours(names: tuple[str, str], file: str, main: str) -> str:
    """Return the legend of the bars as HTML; `file` and `main` are their colours."""
    broad = f'<i class="lakegate-bar" style="background:{main};opacity:0.4;width:1.1em"></i>'
    narrow = f'<i class="lakegate-bar" style="background:{file};width:0.5em"></i>'
    return (
        '<p class="lakegate-legend">Of the rows that have a value, the share in '
        f"{narrow} {escape(names[0])}, {broad} {escape(names[1])}</p>"
    )


def is_sampled(found: Comparison) -> bool:
    """Return if only some rows were read."""
    return not all(side.whole for side in (found.file, found.main) if side)


def legend(found: Comparison) -> list[str]:
    """Return the legend of the figures' marks that occur."""
    figures = [figure for column in found.columns for figure in _all(column)]
    origins = {figure.origin for figure in figures}
    rough = " or ".join(origin.value for origin in _ROUGH if origin in origins)
    lines = [f"≈ {rough}"] if rough else []
    return [*lines, *([f"~ {Origin.BOUND.value}"] if Origin.BOUND in origins else [])]


def table(column: Column, names: tuple[str, str]) -> str:
    """Return the figures of a column as an HTML table: a line each, a column for each side."""
    sides = [side for side in (column.file, column.main) if side]
    heads = [name for name, side in zip(names, (column.file, column.main), strict=True) if side]
    lines = [_line("", [f"<th>{escape(name)}</th>" for name in heads])]
    if len({side.type for side in sides}) > 1:
        lines.append(_row("type", [_safe(side.type) for side in sides]))
    lines.append(_row("no value", [_nulls(side) for side in sides]))
    lines.append(_row("different", [_figure(side.distinct) for side in sides]))
    for name, ends in (
        ("smallest", [side.smallest for side in sides]),
        ("largest", [side.largest for side in sides]),
    ):
        if any(ends):
            lines.append(_row(name, [_figure(figure) for figure in ends]))
    if any(side.nans for side in sides):
        lines.append(_row("NaN", [f"{side.nans:,}" for side in sides]))
    return f'<table class="lakegate-figures">{"".join(lines)}</table>'


def _all(column: Column) -> Iterator[Figure]:
    for side in (column.file, column.main):
        if side:
            ends = (side.smallest, side.largest)
            yield from (side.nulls, side.distinct, *(figure for figure in ends if figure))


def _read(side: Side, name: str) -> str:
    rows = count(side.rows, "row")
    start = f"{name[:1].upper()}{name[1:]}: "
    if side.whole:
        return f"{start}{rows}."
    files = f"{side.files_read:,} of {count(side.files, 'data file')}"
    return (
        f"{start}{rows}; what the statistics do not tell is from {side.read:,} of them ({files})."
    )


def _nulls(side: Profile) -> str:
    many = side.nulls.value
    if not isinstance(many, int) or not side.rows:
        return _figure(side.nulls)
    of = side.read if side.nulls.origin is Origin.SAMPLE else side.rows
    share = f" ({many / of:.1%})" if many and of else ""
    return f"{_figure(side.nulls)}{share}"


def _figure(figure: Figure | None) -> str:
    if figure is None or figure.value is None:
        return _NONE
    mark = "≈ " if figure.origin in _ROUGH else "~ " if figure.origin is Origin.BOUND else ""
    text = f"{figure.value:,}" if isinstance(figure.value, int) else _safe(figure.value)
    return f'<span title="{escape(figure.origin)}">{mark}{text}</span>'


def _row(name: str, cells: list[str]) -> str:
    return _line(name, [f"<td>{cell}</td>" for cell in cells])


def _line(name: str, cells: list[str]) -> str:
    return f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>'


def _safe(text: str) -> str:
    shown = one_line(text)
    return f"<bdi>{escape(shown)}</bdi>" if shown else "<i>empty</i>"


# Charts of a comparison. Main is a broad pale bar, the new file a narrow dark one on top of it:
# their shapes differ, not only their colours.

_HEIGHT, _STEP = 130, 20


@dataclass(frozen=True)
class _Look:
    """The look of one side's bars: colour, opacity, share of the width."""

    colour: str
    opacity: float
    breadth: float


FILE, MAIN = charts.BLUE, charts.GREY
_MAIN, _FILE = _Look(MAIN, 0.4, 0.9), _Look(FILE, 1.0, 0.4)


def picture(found: Picture, names: tuple[str, str]) -> alt.LayerChart | alt.FacetChart:
    """Return the shares of both sides in the same bins, or of the same values.

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
    """Return bins side by side."""
    axis = alt.Axis(labelAngle=0, labelOverlap="greedy", ticks=False)
    return {"x": alt.X("value:N", sort=labels, axis=axis, title=None), "y": alt.Y(**_SHARE)}


def _from_the_left(labels: list[str]) -> dict[str, Any]:
    """Return values one below the other, which leaves room for their texts."""
    axis = alt.Axis(labelLimit=170, ticks=False, domain=False)
    return {"x": alt.X(**_SHARE), "y": alt.Y("value:N", sort=labels, axis=axis, title=None)}


_SHARE: dict[str, Any] = {
    "shorthand": "share:Q",
    "axis": alt.Axis(format="%", tickCount=3, domain=False, ticks=False),
    "title": None,
}


def _filled(found: Picture) -> list[str]:
    """Return the bins without empty ones for outside values."""
    sides = [shares for shares in (found.file, found.main) if shares]
    last = len(found.labels) - 1
    return [
        label
        for number, label in enumerate(found.labels)
        if 0 < number < last or any(shares[number] for shares in sides)
    ]
