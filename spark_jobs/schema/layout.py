"""Find how a table's layout differs from the one that its contract declares. Pure."""

from collections.abc import Iterator, Mapping

from lakegate.contract.columns import quoted
from lakegate.contract.reading.layout import COMMENT, TableLayout
from lakegate.contract.reading.partitions import Partition


def partition_clause(layout: TableLayout) -> str:
    """Return the clause of CREATE TABLE for the layout's partitions, "" without any."""
    terms = ", ".join(_term(each) for each in layout.partitions or ())
    return f" PARTITIONED BY ({terms})" if terms else ""


def _term(partition: Partition) -> str:
    """Return a partition as Spark SQL writes it: `bucket(16, id)`."""
    (kind, number), column = partition.parts, quoted(partition.column)
    if kind == "identity":
        return column
    return f"{kind}({number}, {column})" if number else f"{kind}({column})"


def missing(there: TableLayout, wanted: TableLayout) -> TableLayout:
    """Return what must change in a table that is stored like `there`; the rest is unsaid.

    The sequence of partitions has no meaning to readers, that of sort keys has. Names are compared
    without case.
    """
    partitions, order = wanted.partitions, wanted.order
    present = set(_texts(there.partitions))
    same_partitions = partitions is not None and present == set(_texts(partitions))
    same_order = order is not None and _texts(there.order) == _texts(order)
    return TableLayout(
        None if same_partitions else partitions,
        None if same_order else order,
        _new(there.properties, wanted.properties),
        _new(there.comments, wanted.comments),
    )


def _texts(parts: tuple[object, ...] | None) -> list[str]:
    return [str(part).lower() for part in parts or ()]


def _new(there: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in wanted.items() if there.get(key) != value}


def sentences(change: TableLayout) -> Iterator[str]:
    """Yield what changes, for the report. Comments are counted, as they may be long."""
    if change.partitions is not None:
        by = ", ".join(map(str, change.partitions))
        yield f"table: new files partitioned by {by}" if by else "table: no longer partitioned"
    if change.order is not None:
        by = ", ".join(map(str, change.order))
        yield f"table: new files sorted by {by}" if by else "table: no longer sorted"
    for name, value in change.properties.items():
        if name != COMMENT:
            yield f"table: property {name} set to {value}"
    if commented := len(change.comments) + (COMMENT in change.properties):
        yield f"table: {commented} comment{'s' if commented > 1 else ''} set"
