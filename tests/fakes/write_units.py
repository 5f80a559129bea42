"""DynamoDB's charge for a write, computed from the items before and after it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Item = Mapping[str, Any]
_UNIT = 1024  # bytes
_CONTAINER = 3


@dataclass(frozen=True)
class Index:
    """A global secondary index: its key's attributes and the others that it has, or all."""

    name: str
    keys: tuple[str, ...]
    has_all: bool
    also: tuple[str, ...] = ()

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> "Index":
        """Return the index that a CloudFormation template describes."""
        keys = tuple(each["AttributeName"] for each in described["KeySchema"])
        projection = described["Projection"]
        also = tuple(projection.get("NonKeyAttributes", ()))
        return cls(described["IndexName"], keys, projection["ProjectionType"] == "ALL", also)

    def entry(self, item: Item | None) -> Item | None:
        """Return the index's copy of an item, or None if the item lacks its key."""
        if item is None or any(key not in item for key in self.keys):
            return None
        names = ("id", *self.keys, *self.also)
        return item if self.has_all else {name: item[name] for name in names if name in item}


def units(before: Item | None, after: Item, indexes: Sequence[Index]) -> dict[str, int]:
    """Return the write units of replacing an item, by index; "" is the table itself.

    A unit is a started kilobyte of the larger of the two. An index whose key changed deletes and
    puts; an unchanged index takes none (DynamoDB Developer Guide, "Using Global Secondary Indexes",
    "Provisioned throughput considerations"; the same units on demand).
    """
    taken = {"": max(_units(before), _units(after))}
    for index in indexes:
        taken[index.name] = sum(_changes(index, index.entry(before), index.entry(after)))
    return taken


def _changes(index: Index, before: Item | None, after: Item | None) -> Iterator[int]:
    if before and after and all(before[key] == after[key] for key in index.keys):
        yield max(_units(before), _units(after)) if before != after else 0
    else:
        yield from (_units(before), _units(after))


def _units(item: Item | None) -> int:
    return -(-size(item) // _UNIT) if item else 0


def size(value: Any) -> int:
    """Return the bytes of a value (DynamoDB Developer Guide, "Item sizes and formats")."""
    match value:
        case bool() | None:
            return 1
        case str():
            return len(value.encode())
        case int() | float() | Decimal():
            return len(str(value)) // 2 + 2
        case dict():
            return sum(len(name.encode()) + size(each) for name, each in value.items())
        case list() | tuple():
            return _CONTAINER + sum(1 + size(each) for each in value)
    raise TypeError(f"DynamoDB has no {type(value)}")
