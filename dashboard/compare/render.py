"""Write a comparison's figures in words, and as the HTML of small tables. Pure.

Foreign text is escaped, and brought to one line without acting characters.
"""

from html import escape

from dashboard.compare.bars import FILE, MAIN
from dashboard.compare.figures import (
    Column,
    Comparison,
    Figure,
    Origin,
    Profile,
    Side,
)
from lakegate.text import count, one_line

_ROUGH = (Origin.SAMPLE, Origin.ESTIMATE)
_NONE = "–"  # noqa: RUF001 - a dash where there is nothing


def stands_on(comparison: Comparison, names: tuple[str, str]) -> str:
    """Return the basis of both sides' figures, one sentence each."""
    if not comparison.main:
        return f"{_read(comparison.file, names[0])} Main has no such table yet."
    return f"{_read(comparison.file, names[0])} {_read(comparison.main, names[1])}"


def colours(names: tuple[str, str]) -> str:
    """Return the legend of the bars as HTML."""
    broad = f'<i class="lakegate-bar" style="background:{MAIN};opacity:0.4;width:1.1em"></i>'
    narrow = f'<i class="lakegate-bar" style="background:{FILE};width:0.5em"></i>'
    return (
        '<p class="lakegate-legend">Of the rows that have a value, the share in '
        f"{narrow} {escape(names[0])}, {broad} {escape(names[1])}</p>"
    )


def is_sampled(comparison: Comparison) -> bool:
    """Return if only some rows were read."""
    return not all(side.whole for side in (comparison.file, comparison.main) if side)


def legend(comparison: Comparison) -> list[str]:
    """Return the legend of the figures' marks that occur."""
    sides = [side for column in comparison.columns for side in (column.file, column.main) if side]
    figures = [figure for side in sides for figure in _figures(side)]
    origins = {figure.origin for figure in figures if figure}
    rough = " or ".join(origin.value for origin in _ROUGH if origin in origins)
    lines = [f"≈ {rough}"] if rough else []
    return [*lines, *([f"~ {Origin.BOUND.value}"] if Origin.BOUND in origins else [])]


def table(column: Column, names: tuple[str, str]) -> str:
    """Return the figures of a column as an HTML table: a line each, a column for each side."""
    both = zip(names, (column.file, column.main), strict=True)
    there = {name: side for name, side in both if side}
    sides = list(there.values())
    lines = [
        ("no value", [_nulls(side) for side in sides]),
        ("different", [_figure(side.distinct) for side in sides]),
    ]
    if len({side.type for side in sides}) > 1:
        lines.insert(0, ("type", [_safe(side.type) for side in sides]))
    if any(side.smallest for side in sides):
        lines.append(("smallest", [_figure(side.smallest) for side in sides]))
        lines.append(("largest", [_figure(side.largest) for side in sides]))
    if any(side.nans for side in sides):
        lines.append(("NaN", [f"{side.nans:,}" for side in sides]))
    rows = [_line(name, [f"<td>{cell}</td>" for cell in cells]) for name, cells in lines]
    heads = _line("figure", [f'<th scope="col">{escape(name)}</th>' for name in there])
    return f'<table class="lakegate-figures">{heads}{"".join(rows)}</table>'


def _figures(side: Profile) -> tuple[Figure | None, ...]:
    return side.nulls, side.distinct, side.smallest, side.largest


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


def _line(name: str, cells: list[str]) -> str:
    return f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>'


def _safe(text: str) -> str:
    shown = one_line(text)
    return f"<bdi>{escape(shown)}</bdi>" if shown else "<i>empty</i>"
