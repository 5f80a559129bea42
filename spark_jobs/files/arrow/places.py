"""The places of a contract's columns in a Parquet schema, as Iceberg's writer lays them out. Pure.

A Parquet schema is a list of elements, each before those within it. Lists and maps have a group
between them and their values, which repeats.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lakegate.contract.columns import Column
from spark_jobs.schema.types import Array, Map, Struct, Type, parse

_NAME, _CHILDREN = 4, 5  # parquet.thrift: SchemaElement
_DEEPEST = 50
Element = Mapping[int, Any]


@dataclass(frozen=True)
class Place:
    """An element of a Parquet schema, by its path: names from the column's on, joined by dots.

    `type` is the type of its values, None for a group that repeats.
    """

    path: str
    type: Type | None

    @property
    def is_leaf(self) -> bool:
        """Return if it has values itself."""
        return isinstance(self.type, str)


@lru_cache(maxsize=64)
def places(columns: tuple[Column, ...]) -> tuple[Place, ...]:
    """Return the places of columns, each before those within it."""
    return tuple(place for each in columns for place in _nested(Place(each.name, parse(each.type))))


def fields(columns: tuple[Column, ...]) -> list[Place]:
    """Return the places that have a field id: all but groups that repeat."""
    return [each for each in places(columns) if each.type is not None]


def _nested(place: Place) -> Iterator[Place]:
    yield place
    match place.type:
        case Struct(parts):
            inner = [Place(f"{place.path}.{name}", type_) for name, type_ in parts]
        case Array(item):
            yield (group := Place(f"{place.path}.list", None))
            inner = [Place(f"{group.path}.element", item)]
        case Map(key, value):
            yield (group := Place(f"{place.path}.key_value", None))
            inner = [Place(f"{group.path}.key", key), Place(f"{group.path}.value", value)]
        case _:
            inner = []
    for each in inner:
        yield from _nested(each)


def elements(schema: Sequence[Element]) -> list[tuple[tuple[str, ...], Element]]:
    """Return the elements of a schema after its root, in order, each with the names on its path.

    Raises ValueError for a schema that is no tree, LookupError for one without names.
    """
    root, *others = schema
    left = iter(others)
    children = list(_children(root, (), left))
    if len(children) < len(others):
        raise ValueError("its schema has more elements than its root")
    return children


def _children(
    parent: Element, path: tuple[str, ...], left: Iterator[Element]
) -> Iterator[tuple[tuple[str, ...], Element]]:
    if len(path) > _DEEPEST:
        raise ValueError("its schema is too deep")
    for _ in range(parent.get(_CHILDREN) or 0):
        each = next(left, None)
        if each is None:
            raise ValueError("its schema has fewer elements than it declares")
        here = (*path, each[_NAME].decode())
        yield here, each
        yield from _children(each, here, left)
