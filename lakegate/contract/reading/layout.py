"""Read how a contract stores its table: partitions, sort order, table properties and comments."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lakegate.contract.columns import ITEM, KEY, VALUE, Column
from lakegate.contract.reading.partitions import Partition, read_partitions
from lakegate.contract.reading.properties import Property
from lakegate.contract.reading.table_properties import read_table_properties
from lakegate.contract.text.fields import Field

COMMENT = "comment"  # the table property that engines show as the table's comment
_STEPS = {ITEM: "element", KEY: "key", VALUE: "value"}


@dataclass(frozen=True)
class SortKey:
    """A column by which the rows within a data file are sorted."""

    column: str
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        direction = "desc" if self.descending else "asc"
        return f"{self.column} {direction} nulls {'first' if self.nulls_first else 'last'}"


@dataclass(frozen=True)
class TableLayout:
    """How a table is stored; what it does not say stays as it is in the table.

    `partitions` and `order` are None where nothing is said, and empty for a table without them.
    `properties` are Iceberg's table properties, the table's comment included. `comments` are those
    of columns by Iceberg's path, such as `lines.element.sku`.
    """

    partitions: tuple[Partition, ...] | None = None
    order: tuple[SortKey, ...] | None = None
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    comments: Mapping[str, str] = field(default_factory=dict, hash=False)


def read_layout(
    schema: Field, settings: Field, properties: list[Property], added: Iterable[Column] = ()
) -> TableLayout:
    """Return the layout that a schema object, its properties and Lakegate's settings declare.

    `added` are columns of the table that are no properties.
    """
    every = [inner for entry in properties for inner in entry.walk()]
    columns = [entry.column for entry in every]
    described = {COMMENT: schema.text("description")} if schema.text("description") else {}
    return TableLayout(
        read_partitions(properties, every),
        _order(settings.at("sortOrder"), properties),
        {**read_table_properties(settings.at("tableProperties")), **described},
        {_path(c): c.description for c in (*columns, *added) if c.description},
    )


def _path(column: Column) -> str:
    return ".".join(_STEPS.get(step, step) for step in column.steps)


_LONGEST = 1000  # characters of a key: of more blanks the expression would never find the end
_KEY = re.compile(r"(.+?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?", re.IGNORECASE)


def _order(listed: Field, properties: Sequence[Property]) -> tuple[SortKey, ...] | None:
    """Return the keys by which rows are sorted; None if nothing is said."""
    if not listed.given:
        return None
    known = {entry.column.name: entry.column for entry in properties}
    keys: dict[str, SortKey] = {}
    for item in listed.items():
        key = _sort_key(item.node.text)
        column = item.known(key.column, known, "a column here")
        if column and column.logical_type in ("object", "array", "map", "vector"):
            item.refuse(f"{key.column} is {column.type}, which has no order")
        elif column and key.column in keys:
            item.refuse(f"{key.column} is listed twice")
        keys.setdefault(key.column, key)
    return tuple(keys.values())


def _sort_key(text: str) -> SortKey:
    """Return `column [asc|desc] [nulls first|last]`; as in Spark, nulls are the least."""
    matched = _KEY.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    name, direction, nulls = matched.groups(default="") if matched else (text, "", "")
    descending = direction.lower() == "desc"
    return SortKey(name, descending, nulls.lower() == "first" if nulls else not descending)
