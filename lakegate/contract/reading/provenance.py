"""Read which columns of a table say where each row comes from.

The columns are not in the landed files: the job fills them in from the landed object's identity.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from lakegate.contract.columns import Column
from lakegate.contract.reading.fields import Field
from lakegate.contract.reading.properties import Property, name_problem


class Origin(StrEnum):
    """What a column says about the origin of a row, by the key of a contract."""

    KEY = "key"
    VERSION = "version"
    INGESTION = "ingestion"
    ROW = "row"
    LANDED_AT = "landedAt"


_COLUMNS = {  # the usual name, the column type, the logical type, the comment
    Origin.KEY: ("landed_key", "string", "string", "Key of the landed object"),
    Origin.VERSION: ("landed_version", "string", "string", "Version of the landed object"),
    Origin.INGESTION: ("ingestion_id", "string", "string", "Id of the ingestion of the row"),
    Origin.ROW: ("row_number", "bigint", "integer", "Number of the row in its file, from 1"),
    Origin.LANDED_AT: ("landed_at", "timestamp", "timestamp", "When the landed object landed"),
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
        """Return the columns, which are nullable: rows of before have no value there."""
        return tuple(_column(origin, name) for origin, name in self.names.items())

    def has(self, name: str) -> bool:
        """Return if one of the columns has this name, in any case."""
        return name.lower() in {each.lower() for each in self.names.values()}


def _column(origin: Origin, name: str) -> Column:
    _, type_, logical, comment = _COLUMNS[origin]
    return Column(name, type_, logical, description=comment)


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
        names = {origin: _COLUMNS[origin][0] for origin in wanted}
    else:
        given.limit_keys(tuple(Origin))
        names = {origin: given.required_text(origin) for origin in Origin if given.has(origin)}
        if transformed and Origin.ROW in names:
            given.refuse("a transform's result has no row numbers of the file", Origin.ROW)
    _check(given, names, properties)
    return Provenance(names)


def _check(given: Field, names: Mapping[Origin, str], properties: Sequence[Property]) -> None:
    """Refuse names that no column can have, or another column has."""
    taken = {found.column.name.lower() for found in properties}
    for origin, name in names.items():
        if problem := name_problem(name, top=True):
            given.refuse(problem, origin)
        elif name.lower() in taken:
            other = f"{name!r} is another column's name: give {origin} a name of its own"
            given.refuse(other, origin)
        taken.add(name.lower())
