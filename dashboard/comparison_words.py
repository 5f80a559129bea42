"""A comparison's figures in words, and as the HTML of small tables. Pure.

Whatever is of others is escaped, and brought to one line on which no character acts.
"""

from collections.abc import Iterator
from html import escape

from dashboard.comparison_figures import Column, Comparison, Figure, Origin, Profile, Side
from dashboard.words import count
from lakegate.visible import one_line

_ROUGH = (Origin.SAMPLE, Origin.ESTIMATE)
_NONE = "–"  # noqa: RUF001 - a dash where there is nothing


def stands_on(found: Comparison, names: tuple[str, str]) -> str:
    """What the figures of both sides stand on, in a sentence each."""
    if not found.main:
        return f"{_read(found.file, names[0])} Main has no such table yet."
    return f"{_read(found.file, names[0])} {_read(found.main, names[1])}"


def colours(names: tuple[str, str], file: str, main: str) -> str:
    """What the bars of the pictures mean, as HTML; `file` and `main` are their colours."""
    broad = f'<i class="lakegate-bar" style="background:{main};opacity:0.4;width:1.1em"></i>'
    narrow = f'<i class="lakegate-bar" style="background:{file};width:0.5em"></i>'
    return (
        '<p class="lakegate-legend">Of the rows that have a value, the share in '
        f"{narrow} {escape(names[0])}, {broad} {escape(names[1])}</p>"
    )


def is_sampled(found: Comparison) -> bool:
    """Whether not all rows were read."""
    return not all(side.whole for side in (found.file, found.main) if side)


def legend(found: Comparison) -> list[str]:
    """What the marks of the figures mean, of those that there are."""
    figures = [figure for column in found.columns for figure in _all(column)]
    origins = {figure.origin for figure in figures}
    rough = " or ".join(origin.value for origin in _ROUGH if origin in origins)
    lines = [f"≈ {rough}"] if rough else []
    return [*lines, *([f"~ {Origin.BOUND.value}"] if Origin.BOUND in origins else [])]


def table(column: Column, names: tuple[str, str]) -> str:
    """The figures of a column as an HTML table, a line each, a column for each side."""
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
