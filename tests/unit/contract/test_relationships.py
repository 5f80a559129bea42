"""The notations of a contract's relationships, and the invalid ones."""

import textwrap

import pytest

from lakegate.contract.checks import CheckSpec, Severity
from lakegate.contract.reading.properties import read_properties
from lakegate.contract.reading.quality.drafts import Draft
from lakegate.contract.reading.quality.relationships import read_relationships
from lakegate.contract.rules import Reference
from lakegate.contract.text.fields import Field
from lakegate.contract.text.problems import Problem
from lakegate.contract.text.yaml import load

SCHEMA = """\
id: flights_obj
name: flights
physicalName: nyc.flights
properties:
  - {id: tail, name: tailnum, logicalType: string, relationships: [PROPERTY]}
  - {name: origin, logicalType: string}
  - {id: day_prop, name: day, physicalName: the day, logicalType: date}
relationships: [OBJECT]
"""

Found = list[tuple[tuple[str, ...], CheckSpec]]


def read_drafts(more: str) -> list[Draft]:
    """Return the one relationship of tailnum to planes, with `more` in it."""
    problems: list[Problem] = []
    text = SCHEMA.replace("PROPERTY", f"{{to: planes.tailnum, {more}}}").replace("OBJECT", "")
    schema = Field(load(text, "a.yaml", problems), "", problems)
    return list(read_relationships(schema, "nyc.flights", read_properties(schema.at("properties"))))


def read(at_property: str = "", at_object: str = "") -> tuple[Found, list[str]]:
    """Return nyc.flights's relationships with the given ones, and the problems of refused ones."""
    problems: list[Problem] = []
    text = SCHEMA.replace("PROPERTY", at_property).replace("OBJECT", at_object)
    schema = Field(load(textwrap.dedent(text), "a.yaml", problems), "", problems)
    properties = read_properties(schema.at("properties"))
    problems.clear()
    found = list(read_relationships(schema, "nyc.flights", properties))
    return [(each.check.columns, each.check.rule) for each in found], [p.reason for p in problems]


@pytest.mark.parametrize(
    ("to", "table", "column"),
    [
        ("planes.tailnum", "nyc.planes", "tailnum"),
        ("faa.planes.tailnum", "faa.planes", "tailnum"),
        ("[faa.planes.tailnum]", "faa.planes", "tailnum"),
        ("flights.day", "nyc.flights", "the day"),
        ("nyc.flights.day", "nyc.flights", "the day"),
        ("schema/flights_obj/properties/day_prop", "nyc.flights", "the day"),
        ("/schema/flights_obj/properties/day_prop", "nyc.flights", "the day"),
    ],
)
def test_a_reference_names_a_table_and_its_column(to: str, table: str, column: str) -> None:
    """A reference names a table and its column, by names or by the contract's own ids."""
    assert read(f"{{to: {to}}}") == ([(("tailnum",), Reference(table, (column,)))], [])


def test_several_columns_are_compared_together() -> None:
    """Lists of the same length at the schema object name a composite reference."""
    found = read(
        at_object="{from: [flights.origin, flights.day], to: [weather.origin, weather.on]}"
    )
    assert found == ([(("origin", "the day"), Reference("nyc.weather", ("origin", "on")))], [])


def test_one_column_may_stand_at_the_object() -> None:
    """At the schema object, `from` names one column by name or by id."""
    for source in ("flights.tailnum", "schema/flights_obj/properties/tail"):
        found = read(at_object=f"{{type: foreignKey, from: {source}, to: planes.tailnum}}")
        assert found == ([(("tailnum",), Reference("nyc.planes", ("tailnum",)))], [])


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("{type: foreignKey}", "is missing"),
        ("{to: planes.tailnum, type: foreign}", "use one of foreignKey"),
        ("{to: planes.tailnum, tpye: foreignKey}", "unknown key"),
        ("{to: planes.tailnum, from: flights.tailnum}", "is the property itself here"),
        ("{to: tailnum}", "does not name a column"),
        ("{to: 3}", "must be text"),
        ("{to: [planes.tailnum, planes.year]}", "names 2 columns, where 1 are compared"),
        ("{to: []}", "at least one"),
        ("{to: flights.tailnumm}", "not a property of this object"),
        ("{to: flights.tailnum}", "refers to itself"),
        ("{to: schema/planes/properties/tailnum}", "no schema object with the id 'planes'"),
        ("{to: schema/flights_obj/properties/x}", "not the id of a property"),
        ("{to: 'faa.yaml#/schema/planes/properties/tailnum'}", "another file"),
        ("{to: a.b.c.d}", "must be a table and its column"),
    ],
)
def test_an_unresolvable_reference_is_refused(written: str, reason: str) -> None:
    """A reference that cannot be resolved is refused with the reason, and adds no check."""
    refused = read(written)[1]
    assert len(refused) == 1
    assert reason in refused[0]


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("{to: planes.tailnum}", "is missing"),
        ("{from: planes.tailnum, to: planes.tailnum}", "must name columns of nyc.flights"),
        ("{from: [flights.day, flights.day], to: [a.b, a.c]}", "a column twice"),
        ("{from: [flights.day, flights.origin], to: [a.b, b.c]}", "columns of one table"),
        ("{from: [flights.day, flights.origin], to: a.b}", "names 1 columns, where 2"),
    ],
)
def test_lists_that_do_not_go_together_are_refused(written: str, reason: str) -> None:
    """Both sides must name equally many columns, each side of one table and without repetition."""
    refused = read(at_object=written)[1]
    assert len(refused) == 1
    assert reason in refused[0]


def test_a_relationship_may_have_limits() -> None:
    """A relationship's properties set its filter, its threshold and its effects."""
    (found,) = read_drafts(
        "customProperties: ["
        "{property: failUnless, value: {mustBeLessThan: 20}}, {property: unit, value: percent}, "
        "{property: warnUnless, value: {mustBe: 0}}, {property: severity, value: warning}, "
        "{property: where, value: origin = 'JFK'}, {property: cardinality, value: '1:n'}]"
    )
    check = found.check
    assert check.expected == "less than 20 % of rows"
    assert (check.warn and check.warn.wording) == "0 % of rows"
    assert (check.severity, check.where) == (Severity.WARNING, "origin = 'JFK'")


@pytest.mark.parametrize(
    ("property_", "reason"),
    [
        (
            "{property: failunless, value: {mustBe: 0}}",
            "unknown property 'failunless' (did you mean failUnless?)",
        ),
        ("{property: failUnless, value: {mustBe: 0, mustBeLessThan: 3}}", "exactly one"),
        ("{property: failUnless, value: {most: 0}}", "unknown key"),
        ("{property: unit, value: number}", "use one of rows, percent"),
        ("{property: onBadRow, value: quarantine}", "onBadRow has no effect here"),
    ],
)
def test_limits_that_mean_nothing_are_refused(property_: str, reason: str) -> None:
    """An invalid property of a relationship is refused."""
    refused = read(f"{{to: planes.tailnum, customProperties: [{property_}]}}")[1]
    assert reason in refused[0]
