"""Judging a contract by the standard's JSON Schema, in linear time."""

import json
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft201909Validator

from access.contract.check import check
from access.contract.standard_schema import schema_problems
from lakegate.contract.model import ContractInvalid, parse
from lakegate.contract.text.yaml import load
from tests.unit.contract.contract_texts import HEAD, contract_text
from tests.unit.contract.test_robust import ODD, PLACES, changed

SCHEMA = json.loads(
    (resources.files("open_data_contract_standard") / "schema.json").read_text(encoding="utf-8")
)
ORACLE = Draft201909Validator(SCHEMA)
LINES = "support: [{channel: '#shop', tool: slack}]\nteam: {members: [{username: a}]}\n"
# Parts of a contract that the standard judges, right and wrong.
PARTS = [
    *(LINES, "team: [{username: a}]\n", "team: [{name: a}]\n", "status: 3\n", "tenant: null\n"),
    *("servers: [{server: a, type: s3, location: b}]\n", "servers: [{server: a, type: s3}]\n"),
    *("servers: [{server: a, type: kafka, host: b, port: x}]\n", "servers: [{type: nonsense}]\n"),
    *("context: {constraints: [{}]}\n", "context: words\n", "price: {priceAmount: x}\n"),
    *("slaProperties: [{property: a, value: [1]}]\n", "slaProperties: [{property: a}]\n"),
    "tags: [a, 1]\n",
]
COLUMNS = [
    "{logicalType: object, properties: [{name: a, logicalType: string}]}",
    "{logicalType: array, items: {logicalType: object, properties: [{name: a, odd: 1}]}}",
    "{logicalType: map, map: {key: {logicalType: string}, value: {logicalType: integer}}}",
    "{logicalType: map}",
    "{logicalType: string, properties: [{name: a}]}",
    "{logicalType: string, logicalTypeOptions: {maxLength: -1}}",
    "{logicalType: string, logicalTypeOptions: {minimum: 1}}",
    "{logicalType: integer, logicalTypeOptions: {multipleOf: 0}}",
    "{logicalType: timestamp, logicalTypeOptions: {timezone: 1}}",
    "{logicalType: string, enum: []}",
    "{logicalType: string, enum: [{value: a}, {value: a}]}",
    "{logicalType: string, relationships: [{to: a.b}]}",
    "{logicalType: string, relationships: [{to: a.b, from: c}]}",
    "{logicalType: string, quality: [{metric: nullValues}]}",
    "{logicalType: string, quality: [{metric: nullValues, mustBe: 0, mustBeLessThan: 1}]}",
    "{logicalType: string, quality: [{metric: nullValues, mustBeBetween: [1, 1]}]}",
    "{logicalType: string, quality: [{type: sql, query: q, odd: 1}]}",
    "{logicalType: string, quality: [{type: custom, engine: soda}]}",
]


def broken(text: str) -> tuple[bool, bool]:
    """Return if a contract breaks the standard, here and by a library."""
    tree = load(text, "a.yaml", [])
    return bool(schema_problems(tree)), not ORACLE.is_valid(tree.plain())


@pytest.mark.parametrize("part", PARTS)
def test_a_contract_is_judged_as_a_library_judges_it(part: str) -> None:
    """The same contracts conform to the standard, whatever part of it they use."""
    here, there = broken(contract_text(head=HEAD + part))
    assert here == there


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_is_judged_as_a_library_judges_it(column: str) -> None:
    """The rules of a column depend on its type, and keep their meaning at any level."""
    named = column.replace("{", "{name: c, ", 1)
    nested = f"{{name: o, logicalType: object, properties: [{named}]}}"
    for each in (named, nested):
        here, there = broken(contract_text(f"- {each}\n"))
        assert here == there


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(PLACES), ODD)
def test_any_contract_is_judged_as_a_library_judges_it(path: Any, value: Any) -> None:
    """A real contract with anything at any place conforms here if it does there."""
    try:
        here, there = broken(changed(path, value))
    except ContractInvalid:
        return  # no YAML
    assert here == there


def nested(levels: int) -> str:
    """Return a contract with so many objects in each other."""
    around = "{name: o, logicalType: object, properties: ["
    inner = "{name: c, logicalType: string}"
    return contract_text(f"- {around * levels}{inner}{']}' * levels}\n")


def wide(columns: int) -> str:
    made = "- {{name: c{0}, logicalType: string, required: true, description: Words.}}\n"
    return contract_text("".join(made.format(n) for n in range(columns)))


def ruled(rules: int) -> str:
    made = "{{metric: nullValues, name: r{0}, mustBeLessThan: {0}}}"
    listed = ", ".join(made.format(n) for n in range(1, rules + 1))
    return contract_text(f"- {{name: c, logicalType: string, quality: [{listed}]}}\n")


def queried(rules: int) -> str:
    made = "{{type: sql, name: r{0}, query: 'SELECT count(c) FROM {{table}}', mustBe: {0}}}"
    listed = ", ".join(made.format(n) for n in range(rules))
    columns = "".join(f"- {{name: c{n}, logicalType: string}}\n" for n in range(rules))
    return contract_text(f"{columns}- {{name: c, logicalType: string, quality: [{listed}]}}\n")


def wrong(columns: int) -> str:
    made = "- {{name: c{0}, logicalType: string, tags: {0}, odd{0}: 1}}\n"
    return contract_text("".join(made.format(n) for n in range(columns)))


def aliased(columns: int) -> str:
    first = "- {name: c, logicalType: string, tags: &t [a, b]}\n"
    made = "- {{name: c{0}, logicalType: string, tags: *t}}\n"
    return contract_text(first + "".join(made.format(n) for n in range(columns)))


def listed(values: int) -> str:
    made = ", ".join(f"{{value: v{n}}}" for n in range(values))
    return contract_text(f"- {{name: c, logicalType: string, enum: [{made}]}}\n")


def calls(work: Callable[[], object]) -> int:
    """Return how many functions are called to do the work, builtin ones too."""
    counted = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    except ContractInvalid:
        pass
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize("work", [check, parse])
@pytest.mark.parametrize(
    ("make", "size"),
    [
        (nested, 11),
        (wide, 60),
        (ruled, 60),
        (queried, 40),
        (wrong, 60),
        (aliased, 60),
        (listed, 60),
    ],
)
def test_twice_the_contract_takes_twice_the_work(
    work: Any, make: Callable[[int], str], size: int
) -> None:
    """The check and the job's own reading take steps in proportion to a contract's size."""
    calls(lambda: work(make(1), "a.yaml"))  # what is loaded once
    few, many = (calls(lambda n=n: work(make(n), "a.yaml")) for n in (size, 2 * size))  # type: ignore[misc]
    assert many < 2.2 * few


def test_the_deepest_contract_is_judged(tmp_path: Path) -> None:
    """As many levels as a contract may have are read, and one more is refused."""
    check(nested(22), "a.yaml")
    with pytest.raises(ContractInvalid, match="nested deeper than 50"):
        check(nested(23), "a.yaml")
