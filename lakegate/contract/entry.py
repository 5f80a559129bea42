"""Compare how a file's rows enter their table under two versions of its contract. Pure.

What a contract checks, and how it reads a file, holds for the attempt that began under it. But rows
that enter the table in another way than those of newer files could stand beside rows that they
should replace, or bring back a column that was dropped.
"""

from collections.abc import Iterator

from lakegate.contract.model import Contract
from lakegate.contract.reading.layout import COMMENT, TableLayout
from lakegate.contract.reading.other_columns import FormerColumns

_ADD = "add"


def entry_changes(earlier: Contract, now: Contract) -> tuple[str, ...]:
    """Return what decides otherwise now where rows go, in words of contracts; () for nothing.

    A column that was only added is no change: rows without it go where they went before.
    """
    pairs = {
        "table": (earlier.table, now.table),
        "writeMode": (earlier.write_mode, now.write_mode),
        "onNewVersion": (earlier.on_new_version, now.on_new_version),
        "isolation": (earlier.isolation, now.isolation),
        "quarantine": (earlier.quarantine, now.quarantine),
        "provenance": (earlier.provenance, now.provenance),
    }
    changed = [key for key, (before, after) in pairs.items() if before != after]
    if earlier.extra_columns == _ADD != now.extra_columns:
        changed.append("extraColumns")
    columns = (f"column {name}" for name in sorted(_columns(earlier, now)))
    return (*changed, *_layout(earlier.layout, now.layout), *columns)


def _columns(earlier: Contract, now: Contract) -> set[str]:
    """Return the columns that a file of before would bring back, change or remove."""
    there = {column.name.lower(): column.type for column in now.table_columns}
    written = {column.name.lower(): column.type for column in earlier.table_columns}
    differing = {name for name, type_ in written.items() if there.get(name) != type_}
    former, former_now = _names(earlier.former), _names(now.former)
    return differing | (former & there.keys()) | (former_now - former)


def _names(former: FormerColumns) -> set[str]:
    return {name.lower() for name in (*former.renamed, *former.dropped)}


def _layout(earlier: TableLayout, now: TableLayout) -> Iterator[str]:
    """Yield what a file of before would change back in how the table is stored."""
    if earlier.partitions not in (None, now.partitions):
        yield "partitions"
    if earlier.order not in (None, now.order):
        yield "sortOrder"
    there = now.properties
    if any(there.get(key) != value for key, value in earlier.properties.items() if key != COMMENT):
        yield "tableProperties"
