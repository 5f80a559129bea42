"""Read which columns of its table a contract renames or drops."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakegate.contract.reading.fields import Field
from lakegate.contract.reading.properties import Property
from lakegate.contract.reading.values import property_options

_FORMER, _DROPPED = "formerName", "droppedColumns"


@dataclass(frozen=True)
class FormerColumns:
    """Columns that a table may still have from an older version of its contract.

    `renamed` maps a former name to the present one. A table that has them loses the `dropped` ones.
    """

    renamed: Mapping[str, str] = field(default_factory=dict, hash=False)
    dropped: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        """Return if a column had this name, in any case."""
        return name.lower() in {each.lower() for each in (*self.renamed, *self.dropped)}


def read_former(
    settings: Field, properties: Sequence[Property], added: Sequence[str]
) -> FormerColumns:
    """Return what the properties' `formerName` and the contract's `droppedColumns` say.

    `added` are names of the table's columns that are no properties.
    """
    present = {name.lower() for name in (*(p.column.name for p in properties), *added)}
    renamed: dict[str, str] = {}
    for found in (inner for each in properties for inner in each.walk()):
        given = property_options(found.field).given
        if given.has(_FORMER):
            _check_former(given, found, {name.lower() for name in renamed} | present)
            renamed[given.text(_FORMER)] = found.column.name
    dropped = list(settings.at(_DROPPED).items())
    names = tuple(item.node.text for item in dropped)
    for item, name in zip(dropped, names, strict=True):
        if name.lower() in present or name.lower() in {each.lower() for each in renamed}:
            item.refuse(f"{name} cannot be dropped: the contract declares it, or renames it")
    return FormerColumns(renamed, names)


def _check_former(given: Field, found: Property, taken: set[str]) -> None:
    name = given.text(_FORMER)
    if len(found.column.steps) > 1:
        given.refuse("lies within another column: only whole columns can be renamed", _FORMER)
    elif not name or name.lower() in taken:
        given.refuse(f"{name!r} is the name of another column, or its former name", _FORMER)
