"""Read the partitions of a contract's table."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lakegate.contract.columns import Column
from lakegate.contract.reading.literals import MOMENTS
from lakegate.contract.reading.properties import Property
from lakegate.contract.text.problems import suggestion

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

    @property
    def names(self) -> set[str]:
        """Return what Iceberg calls it in a new table, and in one that is changed.

        None of them is a name for a column, in any case.
        """
        kind, number = self.parts
        if kind == "identity":
            return set()
        name = f"{self.column.lower()}_{kind.replace('truncate', 'trunc')}"
        return {name, *([f"{name}_{number}"] if number else ())}


def read_partitions(
    properties: Sequence[Property], every: Sequence[Property]
) -> tuple[Partition, ...] | None:
    """Return the partitions in their order; None if no column says whether it is one."""
    for entry in every:
        if not entry.field.has("partitioned") and entry.options.given.has(_TRANSFORM):
            entry.field.refuse(f"{_TRANSFORM} needs partitioned: true", "customProperties")
    if not any(entry.field.has("partitioned") for entry in every):
        return None
    partitioned = _in_order([each for each in every if each.field.flag("partitioned")])
    names = {entry.column.name.lower() for entry in properties}
    partitions = tuple(_partition(entry, names) for entry in partitioned)
    _require_other_decimals(partitioned, partitions)
    return partitions


def _require_other_decimals(
    partitioned: Sequence[Property], partitions: Sequence[Partition]
) -> None:
    """Refuse a decimal that partitions like another of its type.

    pyiceberg cannot read the manifests: they name the type once, and then refer to it.
    """
    seen: dict[str, str] = {}
    for entry, partition in zip(partitioned, partitions, strict=True):
        column = entry.column
        if column.kind == "decimal" and partition.parts[0] != "bucket":
            other = seen.setdefault(column.type, column.name)
            if other != column.name:
                reason = (
                    f"{other} partitions by {column.type} already: use bucket[N] for one of them"
                )
                entry.field.refuse(reason, "partitioned")


def _in_order(partitioned: list[Property]) -> list[Property]:
    """Return partitioned properties by their position, or else as they stand in the contract."""
    by_position: dict[int, Property] = {}
    placed = [entry for entry in partitioned if entry.field.has("partitionKeyPosition")]
    for entry in partitioned if placed else ():
        position = entry.field.count("partitionKeyPosition")
        if position is None:
            entry.field.refuse("is missing: another column has one", "partitionKeyPosition")
        elif position in by_position:
            other = f"{position} is also the position of {by_position[position].column.name}"
            entry.field.refuse(other, "partitionKeyPosition")
        else:
            by_position[position] = entry
    return [by_position[position] for position in sorted(by_position)] or partitioned


def _partition(entry: Property, names: set[str]) -> Partition:
    given, column = entry.options.given, entry.column
    partition = Partition(column.name, given.text(_TRANSFORM, "identity"))
    kind = _NUMBER.sub("[N]", partition.transform)
    place, key = (given, _TRANSFORM) if given.has(_TRANSFORM) else (entry.field, "partitioned")
    if len(column.steps) > 1:
        place.refuse("lies within another column: only whole columns partition a table", key)
    elif kind not in _FITTING or partition.transform.endswith("[N]"):
        place.refuse(f"is none of {', '.join(_FITTING)}{suggestion(kind, _FITTING)}", key)
    elif column.type and _type(column) not in _FITTING[kind]:
        place.refuse(f"{kind} does not fit {column.type}: {_advice(column)}", key)
    elif column.sensitive and kind != "bucket[N]":
        reason = "is confidential, and its values would be in the names of folders"
        place.refuse(f"{column.name} {reason}: only bucket[N] hides them", key)
    elif taken := names & partition.names:
        place.refuse(f"Iceberg would call it {taken.pop()}, as another column is called", key)
    return partition


def _type(column: Column) -> str:
    return "string" if column.kind == "time" else column.kind


def _advice(column: Column) -> str:
    fitting = [name for name, types in _FITTING.items() if _type(column) in types]
    listed = f"give {_TRANSFORM}: {' or '.join(fitting)}"
    return listed if fitting else "no transform does"
