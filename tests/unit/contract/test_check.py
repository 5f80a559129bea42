"""The full check before a push, which includes the standard's own schema."""

import pytest

from access.contract.check import check
from lakegate.contract.model import ContractInvalid, Problem, parse
from tests.unit.contract.contract_texts import HEAD, contract_text

# `parse` accepts these parts because it does not use them; the standard's schema refuses them.
ONLY_SCHEMA = [
    ("status: 3\n", "status", "must be text"),
    ("team: {nam: Shop}\n", "team.nam", "unknown key (did you mean name?)"),
    ("team: {members: [{name: ada}]}\n", "team.members[0].username", "is missing"),
    (
        "servers: [{server: a, type: paper}]\n",
        "servers[0].type",
        "unknown type 'paper'; use one of",
    ),
    ("servers: [{server: a, type: postgresq}]\n", "servers[0].type", "(did you mean postgresql?)"),
]


def problems_of(text: str) -> tuple[Problem, ...]:
    with pytest.raises(ContractInvalid) as refusal:
        check(text, "orders.yaml")
    return refusal.value.problems


def test_a_good_contract_is_the_one_that_is_parsed() -> None:
    """The full check returns the same contract as `parse`."""
    assert check(contract_text(), "orders.yaml") == parse(contract_text(), "orders.yaml")


@pytest.mark.parametrize(("more", "field", "reason"), ONLY_SCHEMA)
def test_a_breach_of_the_standard_is_refused_with_line_and_field(
    more: str, field: str, reason: str
) -> None:
    """Parts that Lakegate does not use must still conform to the standard."""
    text = contract_text(head=HEAD + more)
    parse(text, "orders.yaml")
    (problem,) = problems_of(text)
    assert (problem.line, problem.field) == (5, field)
    assert reason in problem.reason


@pytest.mark.parametrize(
    ("more", "fields"),
    [
        ("logicalType: strin, examples: 3", ["logicalType"]),
        ("examples: [3]", ["logicalType"]),
        ("logicalType: string, requird: true", ["requird"]),
        ("logicalType: string, required: 1", ["required"]),
        ("logicalType: string, logicalTypeOptions: {minimum: 1}", ["logicalTypeOptions.minimum"]),
        ("logicalType: string, quality: [{metric: nullValues}]", ["quality[0]"]),
        ("logicalType: string, quality: [{metric: nul, mustBe: 0}]", ["quality[0].metric"]),
        ("logicalType: string, examples: 3", ["examples"]),
        ("logicalType: strin, required: 1, enum: []", ["enum", "logicalType", "required"]),
    ],
)
def test_each_mistake_is_reported_once(more: str, fields: list[str]) -> None:
    """A mistake that both the schema and Lakegate find is reported once."""
    found = problems_of(contract_text(f"- {{name: c, {more}}}"))
    assert sorted(p.field.removeprefix("schema[0].properties[1].") for p in found) == fields


def test_problems_of_both_are_reported_together() -> None:
    """The problems of the schema and of Lakegate are reported together, in order of lines."""
    text = contract_text("- {name: c, logicalType: strin}", head=HEAD + "status: 3\n")
    fields = [problem.field for problem in problems_of(text)]
    assert fields == ["status", "schema[0].properties[1].logicalType"]


def test_a_key_that_is_given_twice_is_refused() -> None:
    """A duplicate key is refused, because its value is ambiguous."""
    (problem,) = problems_of(contract_text(head=HEAD + "id: again\n"))
    assert (problem.line, problem.field) == (5, "id")
