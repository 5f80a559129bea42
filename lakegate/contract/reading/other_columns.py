"""Read which columns a table has besides its files': of provenance, and of older contracts.

Columns of provenance say where each row comes from: the job fills them in from the landed object's
identity.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from lakegate.contract.columns import Column, folded
from lakegate.contract.reading.properties import Property, name_problem
from lakegate.contract.text.fields import Field

_FORMER, _DROPPED = "formerName", "droppedColumns"
_TEXT = ("string", "string")


class Origin(StrEnum):
    """What a column says about the origin of a row, by the key of a contract."""

    KEY = "key"
    VERSION = "version"
    INGESTION = "ingestion"
    ROW = "row"
    LANDED_AT = "landedAt"


_COLUMNS = {  # with their usual names; they are nullable: rows of before have no value there
    Origin.KEY: Column("landed_key", *_TEXT, description="Key of the landed object"),
    Origin.VERSION: Column("landed_version", *_TEXT, description="Version of the landed object"),
    Origin.INGESTION: Column("ingestion_id", *_TEXT, description="Id of the ingestion of the row"),
    Origin.ROW: Column(
        "row_number", "bigint", "integer", description="Number of the row in its file, from 1"
    ),
    Origin.LANDED_AT: Column(
        "landed_at", "timestamp", "timestamp", description="When the landed object landed"
    ),
}


@dataclass(frozen=True)
class Provenance:
    """The names of the columns that say where each row comes from; none if it is empty."""

    names: Mapping[Origin, str] = field(default_factory=dict, hash=False)

    def __bool__(self) -> bool:
        """Return if there are any."""
        return bool(self.names)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the columns."""
        return tuple(replace(_COLUMNS[each], name=name) for each, name in self.names.items())

    def has(self, name: str) -> bool:
        """Return if one of the columns has this name, in any case."""
        return name.lower() in {each.lower() for each in self.names.values()}


def read_provenance(
    settings: Field, properties: Sequence[Property], *, transformed: bool
) -> Provenance:
    """Return the columns that `provenance` asks for: `all`, or a mapping of some to their names.

    In a `transformed` file, a row has no number.
    """
    given = settings.at("provenance")
    if not given.given:
        return Provenance()
    if given.node.value == "all":
        wanted = [each for each in Origin if not (transformed and each is Origin.ROW)]
        names = {origin: _COLUMNS[origin].name for origin in wanted}
    else:
        given.limit_keys(tuple(Origin))
        names = {origin: given.required_text(origin) for origin in Origin if given.has(origin)}
        if transformed and Origin.ROW in names:
            given.refuse("a transform's result has no row numbers of the file", Origin.ROW)
    _check(given, names, properties)
    return Provenance(names)


def _check(given: Field, names: Mapping[Origin, str], properties: Sequence[Property]) -> None:
    """Refuse names that no column can have, or another column has."""
    taken = {folded(entry.column.name) for entry in properties}
    for origin, name in names.items():
        if problem := name_problem(name, top=True):
            given.refuse(problem, origin)
        elif folded(name) in taken:
            other = f"{name!r} is another column's name: give {origin} a name of its own"
            given.refuse(other, origin)
        taken.add(folded(name))


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

    def outdated(self, names: Iterable[str]) -> dict[str, str]:
        """Return the present names of columns that have only their former ones among these.

        They are by the former names, all in lower case.
        """
        there = {name.lower() for name in names}
        renamed = {old.lower(): new.lower() for old, new in self.renamed.items()}
        return {old: new for old, new in renamed.items() if old in there and new not in there}


def read_former(
    settings: Field, properties: Sequence[Property], added: Sequence[str]
) -> FormerColumns:
    """Return what the properties' `formerName` and the contract's `droppedColumns` say.

    `added` are names of the table's columns that are no properties.
    """
    taken = {name.lower() for name in (*(p.column.name for p in properties), *added)}
    renamed: dict[str, str] = {}
    for entry in (inner for each in properties for inner in each.walk()):
        given = entry.options.given
        if given.has(_FORMER):
            name = given.text(_FORMER)
            _check_former(given, name, entry, taken)
            renamed[name] = entry.column.name
            taken.add(name.lower())
    dropped = list(settings.at(_DROPPED).items())
    for item in dropped:
        if not isinstance(item.node.value, str):
            item.refuse("must be a column's name; numbers and null become text in quotes")
        elif item.node.text.lower() in taken:
            reason = "cannot be dropped: the contract declares it, or renames it"
            item.refuse(f"{item.node.text} {reason}")
    return FormerColumns(renamed, tuple(item.node.text for item in dropped))


def _check_former(given: Field, name: str, entry: Property, taken: set[str]) -> None:
    if len(entry.column.steps) > 1:
        given.refuse("lies within another column: only whole columns can be renamed", _FORMER)
    elif not name or name.lower() in taken:
        given.refuse(f"{name!r} is the name of another column, or its former name", _FORMER)
