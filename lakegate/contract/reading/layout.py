"""Read how a contract stores its table: partitions, sort order, table properties and comments."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lakegate.contract.columns import ITEM, KEY, VALUE, Column
from lakegate.contract.reading.literals import MOMENTS
from lakegate.contract.reading.properties import Property
from lakegate.contract.text.fields import Field
from lakegate.contract.text.problems import suggestion

COMMENT = "comment"  # the table property that engines show as the table's comment
CODEC = "write.parquet.compression-codec"
_STEPS = {ITEM: "element", KEY: "key", VALUE: "value"}


@dataclass(frozen=True)
class Partition:
    """A column by whose transformed value a table is partitioned.

    `transform` is as Iceberg writes it: identity, year, month, day, hour, bucket[16], truncate[4].
    """

    column: str
    transform: str

    def __str__(self) -> str:
        return self.column if self.transform == "identity" else f"{self.transform}({self.column})"

    @property
    def parts(self) -> tuple[str, str]:
        """Return the transform's name and its number, "" without one: `bucket` and `16`."""
        name, _, number = self.transform.rstrip("]").partition("[")
        return name, number


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
    every = [inner for found in properties for inner in found.walk()]
    columns = [found.column for found in every]
    described = {COMMENT: schema.text("description")} if schema.text("description") else {}
    return TableLayout(
        _partitions(properties, every),
        _order(settings.at("sortOrder"), properties),
        {**_table_properties(settings.at("tableProperties")), **described},
        {_path(c): c.description for c in (*columns, *added) if c.description},
    )


def _path(column: Column) -> str:
    return ".".join(_STEPS.get(step, step) for step in column.steps)


# Partitions

_WHOLE = ("int", "bigint", "decimal", "string", "binary")
_FITTING = {  # the types that a transform takes (Iceberg's specification, "Partition Transforms")
    "identity": (*_WHOLE, "date", "boolean"),  # an instant, or a float, is rarely there twice
    "year": MOMENTS,
    "month": MOMENTS,
    "day": MOMENTS,
    "hour": MOMENTS[1:],
    "bucket[N]": (*_WHOLE, *MOMENTS),
    "truncate[N]": _WHOLE,
}
_NUMBER = re.compile(r"\[[1-9][0-9]{0,8}\]")
_TRANSFORM = "partitionTransform"


def _partitions(
    properties: Sequence[Property], every: Sequence[Property]
) -> tuple[Partition, ...] | None:
    """Return the partitions in their order; None if no column says whether it is one."""
    for found in every:
        if not found.field.has("partitioned") and found.options.given.has(_TRANSFORM):
            found.field.refuse(f"{_TRANSFORM} needs partitioned: true", "customProperties")
    if not any(found.field.has("partitioned") for found in every):
        return None
    partitioned = _in_order([each for each in every if each.field.flag("partitioned")])
    names = {found.column.name.lower() for found in properties}
    return tuple(_partition(found, names) for found in partitioned)


def _in_order(partitioned: list[Property]) -> list[Property]:
    """Return partitioned properties by their position, or else as they stand in the contract."""
    by_position: dict[int, Property] = {}
    placed = [found for found in partitioned if found.field.has("partitionKeyPosition")]
    for found in partitioned if placed else ():
        position = found.field.count("partitionKeyPosition")
        if position is None:
            found.field.refuse("is missing: another column has one", "partitionKeyPosition")
        elif position in by_position:
            other = f"{position} is also the position of {by_position[position].column.name}"
            found.field.refuse(other, "partitionKeyPosition")
        else:
            by_position[position] = found
    return [by_position[position] for position in sorted(by_position)] or partitioned


def _partition(found: Property, names: set[str]) -> Partition:
    given, column = found.options.given, found.column
    partition = Partition(column.name, given.text(_TRANSFORM, "identity"))
    kind = _NUMBER.sub("[N]", partition.transform)
    place, key = (given, _TRANSFORM) if given.has(_TRANSFORM) else (found.field, "partitioned")
    if len(column.steps) > 1:
        place.refuse("lies within another column: only whole columns partition a table", key)
    elif kind not in _FITTING or partition.transform.endswith("[N]"):
        place.refuse(f"is none of {', '.join(_FITTING)}{suggestion(kind, _FITTING)}", key)
    elif column.type and _type(column) not in _FITTING[kind]:
        place.refuse(f"{kind} does not fit {column.type}: {_advice(column)}", key)
    elif column.sensitive and kind != "bucket[N]":
        reason = "is confidential, and its values would be in the names of folders"
        place.refuse(f"{column.name} {reason}: only bucket[N] hides them", key)
    elif taken := names & _names(partition):
        place.refuse(f"Iceberg would call it {taken.pop()}, as another column is called", key)
    return partition


def _type(column: Column) -> str:
    return "string" if column.kind == "time" else column.kind


def _advice(column: Column) -> str:
    fitting = [name for name, types in _FITTING.items() if _type(column) in types]
    listed = f"give {_TRANSFORM}: {' or '.join(fitting)}"
    return listed if fitting else "no transform does"


def _names(partition: Partition) -> set[str]:
    """Return what Iceberg calls a partition of a new table, and of one that is changed."""
    kind, number = partition.parts
    if kind == "identity":
        return set()
    name = f"{partition.column.lower()}_{kind.replace('truncate', 'trunc')}"
    return {name, *([f"{name}_{number}"] if number else ())}


# The order of rows

_KEY = re.compile(r"(.+?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?", re.IGNORECASE)


def _order(listed: Field, properties: Sequence[Property]) -> tuple[SortKey, ...] | None:
    """Return the keys by which rows are sorted; None if nothing is said."""
    if not listed.given:
        return None
    known = {found.column.name: found.column for found in properties}
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
    found = _KEY.fullmatch(text.strip())
    name, direction, nulls = found.groups(default="") if found else (text, "", "")
    descending = direction.lower() == "desc"
    return SortKey(name, descending, nulls.lower() == "first" if nulls else not descending)


# Table properties

_MIB = 1 << 20
CODECS = ("zstd", "snappy", "gzip", "uncompressed")
_LEVELS = {"zstd": 22, "gzip": 9}
_SIZES = {
    "write.target-file-size-bytes": (_MIB, 1 << 40),
    "write.parquet.row-group-size-bytes": (_MIB, (1 << 31) - 1),
}
_LEVEL, _VERSION = "write.parquet.compression-level", "format-version"
TABLE_PROPERTIES = (CODEC, _LEVEL, *_SIZES, _VERSION)


def _table_properties(given: Field) -> dict[str, str]:
    """Return the table properties that a contract may set, by Iceberg's names."""
    if not given.given:
        return {}
    given.limit_keys(TABLE_PROPERTIES)
    found = {name: _number(given, name, *ends) for name, ends in _SIZES.items() if given.has(name)}
    codec = given.choice(CODEC, CODECS, default="zstd")
    if given.has(CODEC):
        found[CODEC] = codec
    if given.has(_LEVEL) and codec not in _LEVELS:
        given.refuse(f"{codec} has no levels", _LEVEL)
    elif given.has(_LEVEL):
        found[_LEVEL] = _number(given, _LEVEL, 1, _LEVELS[codec])
    if given.has(_VERSION) and given.at(_VERSION).node.text != "2":
        given.refuse("must be 2: Nessie has no tables of version 3 yet", _VERSION)
    return found


def _number(given: Field, name: str, least: int, most: int) -> str:
    number = given.count(name)
    if number is not None and not least <= number <= most:
        given.refuse(f"must be from {least:,} to {most:,}", name)
    return str(number)
