"""A file's rows on its branch beside the table on main, column by column.

How many rows and nulls there are, and the smallest and the largest value, stands in the manifests;
the rest is counted in rows: in all where they are few, or asked for, and else in a sample.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

import duckdb

from dashboard.comparison_figures import Column, Comparison
from dashboard.comparison_kinds import Kind, common
from dashboard.comparison_picture import picture
from dashboard.comparison_rows import Files
from dashboard.comparison_side import Looked

# How many values of either side are read unasked: what takes a second, with all that is done.
CELLS, ALL = (2_400_000, 600_000), (None, None)
_NESTED = "it has columns within it, which are not counted"
_HIDDEN = "the contract keeps its values from people: they are counted, not shown"
_BYTES = "its values are no text: they are counted, not shown"
_OTHER = "its values are of another kind on main"
_ALIKE = "no value is there twice"
_EMPTY = "there is no value"


def compare(
    file: Files,
    main: Files | None,
    columns: Sequence[str],
    shown: Collection[str],
    cells: tuple[int | None, int | None] = CELLS,
) -> Comparison:
    """Compare the named columns; of those that are not in `shown` no value is told.

    Where a side has more than its number of `cells`, only a sample is read; None is for all rows.
    Raises LakegateError NO_SAMPLE.
    """
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'").fetchall()
        new = Looked(connection, "file", file, columns, cells[0])
        old = Looked(connection, "main", main, columns, cells[1]) if main else None
        compared = tuple(_column(name, new, old, hidden=name not in shown) for name in columns)
        return Comparison(new.side, old.side if old else None, compared)


def _column(name: str, file: Looked, main: Looked | None, *, hidden: bool) -> Column:
    new = file if name in file.kinds else None
    old = main if main and name in main.kinds else None
    sides = [side for side in (new, old) if side]
    kinds = frozenset(side.kinds[name] for side in sides)
    if Kind.NESTED in kinds:
        return Column(name, note=_NESTED)
    column = Column(
        name,
        new.profile(name, hidden=hidden) if new else None,
        old.profile(name, hidden=hidden) if old else None,
    )
    kind = common(kinds)
    if hidden or not kind or kind is Kind.BYTES:
        return replace(column, note=_HIDDEN if hidden else _BYTES if kind else _OTHER)
    drawn = picture(kind, new.values if new else None, old.values if old else None)
    note = _ALIKE if any(side.values.present for side in sides) else _EMPTY
    return replace(column, picture=drawn, note="" if drawn else note)
