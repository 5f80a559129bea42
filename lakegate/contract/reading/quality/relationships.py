"""Read the standard's `relationships`: columns whose values another table must have.

Since v3.1.0 they stand at a property, or with `from` at the schema object, and name their target in
one of two notations: by names, `table.column`, or by ids, `schema/ID/properties/ID`. As a contract
has one table, only that table can be named by ids; other tables are named by names.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lakegate.contract.checks import Check, Metric
from lakegate.contract.columns import ITEM, KEY, VALUE
from lakegate.contract.expectations import NONE
from lakegate.contract.reading.options import OF_RELATIONSHIP, read_options, read_scope
from lakegate.contract.reading.properties import Property
from lakegate.contract.reading.quality.drafts import Draft
from lakegate.contract.reading.quality.expectations import read_second, read_unit
from lakegate.contract.rules import Reference
from lakegate.contract.text.fields import Field

_KNOWN = ("id", "type", "to", "customProperties")
_NAMED = re.compile(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)+", re.ASCII)
_BY_IDS = re.compile(r"/?schema/([\w-]+)/properties/([\w-]+)", re.ASCII)
_TABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)?", re.ASCII)


_ELSEWHERE = "table and its column, as in nyc.planes.tailnum"
Target = tuple[str, str]  # a table and its column


@dataclass(frozen=True)
class _Own:
    """The contract's schema object: its table, and its properties, nested ones included."""

    field: Field
    table: str
    properties: list[Property]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the object's names before a column's name."""
        return (self.field.text("name"), self.table, self.table.rpartition(".")[2])

    def target(self, item: Field) -> Target | None:
        """Return the target of a reference; None if it was refused."""
        text = item.node.value
        if not isinstance(text, str):
            reason = "must be text, such as planes.tailnum"
        elif "#" in text:
            reason = f"names a part of another file, which is not at hand: name a {_ELSEWHERE}"
        elif by_ids := _BY_IDS.fullmatch(text):
            return self._by_ids(item, *by_ids.groups())
        elif _NAMED.fullmatch(text):
            return self._by_names(item, text)
        else:
            reason = f"{text!r} does not name a column: write table.column, as in planes.tailnum"
        item.refuse(reason)
        return None

    def _by_ids(self, item: Field, object_: str, property_: str) -> Target | None:
        if object_ != self.field.text("id"):
            reason = f"there is no schema object with the id {object_!r} in this contract"
            item.refuse(f"{reason}: name another {_ELSEWHERE}")
            return None
        ids = {each.field.text("id"): each.column.name for each in self.properties}
        column = item.known(property_, ids, "the id of a property")
        return (self.table, column) if column else None

    def _by_names(self, item: Field, text: str) -> Target | None:
        for own in filter(None, self.names):
            if text.startswith(f"{own}."):
                return self._own(item, text.removeprefix(f"{own}."))
        table, _, column = text.rpartition(".")
        if not _TABLE.fullmatch(table):
            item.refuse(f"{text!r} must be a {_ELSEWHERE}")
            return None
        namespace = self.table.partition(".")[0]
        return (table if "." in table else f"{namespace}.{table}"), column

    def _own(self, item: Field, name: str) -> Target | None:
        known = {each.column.name: each.column.name for each in self.properties}
        known |= {e.name: e.column.name for e in self.properties if len(e.column.steps) == 1}
        column = item.known(name, known, "a property of this object")
        return (self.table, column) if column else None


def read_relationships(schema: Field, table: str, properties: list[Property]) -> Iterator[Draft]:
    """Return the checks for the relationships of a schema object and of its properties.

    `table` is the name of its table.
    """
    every = [inner for entry in properties for inner in entry.walk()]
    own = _Own(schema, table, every)
    for entry in every:
        for field in entry.field.at("relationships").items():
            if any(step in (ITEM, KEY, VALUE) for step in entry.column.steps):
                field.refuse("what lies in an array or a map cannot be looked up in a table")
            reason = "is the property itself here: leave it out, or move this to the schema object"
            field.limit_keys(_KNOWN, refused={"from": reason})
            yield from _relationship(field, own, [(table, entry.column.name)])
    for field in schema.at("relationships").items():
        field.limit_keys((*_KNOWN, "from"))
        sources = _targets(field, "from", own)
        if any(source != table for source, _ in sources):
            field.refuse(f"must name columns of {table}, such as {own.names[0]}.id", "from")
        else:
            yield from _relationship(field, own, sources)


def _relationship(field: Field, own: _Own, sources: list[Target]) -> Iterator[Draft]:
    field.choice("type", ("foreignKey",), default="foreignKey")
    targets = _targets(field, "to", own)
    if not sources or not targets:
        return
    columns, others = (tuple(column for _, column in side) for side in (sources, targets))
    if len(columns) != len(others):
        field.refuse(f"names {len(others)} columns, where {len(columns)} are compared", "to")
    elif len({table for table, _ in targets}) != 1:
        field.refuse("must name columns of one table", "to")
    elif len(set(columns)) < len(columns) or len(set(others)) < len(others):
        field.refuse("names a column twice")
    elif (targets[0][0], others) == (own.table, columns):
        field.refuse("refers to itself, so nothing could ever be missing", "to")
    else:
        yield _draft(field, columns, Reference(targets[0][0], others))


def _draft(field: Field, columns: tuple[str, ...], reference: Reference) -> Draft:
    options = read_options(field, OF_RELATIONSHIP)
    unit = read_unit(options.given)
    check = Check(
        "",
        Metric.ORPHAN,
        columns,
        reference,
        read_second(options.given, "failUnless", unit) or NONE,
        severity=options.severity,
        scope=read_scope(options, Metric.ORPHAN),
        where=options.where,
        warn=read_second(options.given, "warnUnless", unit),
    )
    return Draft(field, check, field.text("id"))


def _targets(field: Field, key: str, own: _Own) -> list[Target]:
    """Return the targets of a reference or of a list; none if any was refused."""
    place = field.at(key)
    if not place.given:
        field.refuse("is missing", key)
        return []
    items = list(place.items()) if isinstance(place.node.value, tuple) else [place]
    if not items:
        place.refuse("must name at least one column")
    targets = [own.target(item) for item in items]
    named = [target for target in targets if target is not None]
    return named if len(named) == len(targets) else []
