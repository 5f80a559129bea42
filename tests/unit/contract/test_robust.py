"""Random contracts, which are either refused or sound."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from access.contract.check import check
from lakegate.contract.expectations import Operator
from lakegate.contract.model import Contract, ContractInvalid, Problem, parse
from lakegate.contract.text.yaml import load
from lakegate.ecma_patterns import java_pattern
from tests.unit.contract.contract_texts import contract_text

REAL = Path(__file__).parents[3] / "contracts" / "nyc.flights.yaml"
TREE: Any = load(REAL.read_text(), "nyc.flights.yaml", []).plain()
# The real contract with one column of each kind gives the same proof in half the time.
KINDS = ("year", "dep_delay", "carrier", "flight", "tailnum", "origin", "time_hour")
COLUMNS = TREE["schema"][0]["properties"]
TREE["schema"][0]["properties"] = [column for column in COLUMNS if column["name"] in KINDS]

ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([1e999, 10**400, "", " ", "#", "null", "[", "2013-02-30", "00:00:00"])
    | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner),
    max_leaves=5,
)
RULES = st.fixed_dictionaries(
    {"metric": st.sampled_from(["nullValues", "duplicateValues"]), "mustBe": st.just(0)},
    optional={"name": st.sampled_from(["a", "nullValues", "nullValues#2", "b#2"])},
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path to every value in a tree."""
    children: list[tuple[Any, Any]] = []
    if isinstance(tree, dict):
        children = list(tree.items())
    elif isinstance(tree, list):
        children = list(enumerate(tree))
    return [path, *(p for key, child in children for p in places(child, (*path, key)))]


TREE["customProperties"] = [
    {"property": "format", "value": "csv"},
    {"property": "options", "value": {"header": True, "delimiter": ";", "nullValue": "-"}},
]
TREE["schema"][0]["properties"] += [
    {
        "name": "at",
        "logicalType": "timestamp",
        "physicalType": "timestamp",
        "logicalTypeOptions": {"format": "yyyy-MM-dd", "timezone": True, "defaultTimezone": "UTC"},
        "primaryKey": True,
        "classification": "public",
    },
    {
        "name": "price",
        "physicalName": "Price",
        "logicalType": "number",
        "physicalType": "decimal(9,2)",
        "logicalTypeOptions": {"minimum": 0, "exclusiveMaximum": 100},
        "unique": True,
    },
    {"name": "share", "logicalType": "number", "logicalTypeOptions": {"format": "f32"}},
]

PLACES = [path for path in places(TREE) if path]


def changed(path: tuple[Any, ...], value: Any) -> str:
    """Return the text of the real contract with another value at one place."""
    tree = json.loads(json.dumps(TREE))
    place = tree
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(tree, ensure_ascii=False).replace("Infinity", ".inf").replace("NaN", ".nan")


def assert_sound(contract: Contract) -> None:
    """Assert the properties of a contract that all its users rely on."""
    ids = [check.id for check in contract.checks]
    assert len(set(ids)) == len(ids) > 0
    names = [column.name for column in contract.columns]
    assert len({name.lower() for name in names}) == len(names) > 0
    for found in contract.checks:
        assert set(found.columns) <= set(names)
        assert found.description
        assert found.expect.wording
        assert (found.expect.high is not None) == (
            found.expect.operator in (Operator.BETWEEN, Operator.NOT_BETWEEN)
        )
        if found.values.pattern is not None:
            java_pattern(found.values.pattern)


def told(read: Callable[[str, str], Contract], text: str) -> tuple[Problem, ...]:
    """Return the problems of a refused text, or none after an assertion that it is sound."""
    try:
        contract = read(text, "odd.yaml")
    except ContractInvalid as refusal:
        return refusal.problems
    assert_sound(contract)
    return ()


def test_the_contract_that_is_changed_is_a_good_one() -> None:
    """The contract that the other tests change has no problems itself."""
    assert told(check, changed(("status",), "draft")) == ()


@settings(deadline=None)
@given(path=st.sampled_from(PLACES), value=ODD)
def test_a_contract_with_anything_anywhere_is_sound_or_refused(
    path: tuple[Any, ...], value: Any
) -> None:
    """A real contract with any value at any place is sound, or refused with line numbers."""
    found = told(parse, changed(path, value))
    assert all(problem.line >= 1 and problem.reason for problem in found)


@settings(max_examples=30, deadline=None)
@given(path=st.sampled_from(PLACES), value=ODD)
def test_the_full_check_refuses_whatever_parse_refuses(path: tuple[Any, ...], value: Any) -> None:
    """The full check refuses every text that `parse` refuses, and raises no other error."""
    text = changed(path, value)
    assert set(told(parse, text)) <= set(told(check, text))


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8")))
def test_any_text_is_a_contract_or_refused(text: str) -> None:
    """For any text, `parse` returns a contract or raises ContractInvalid."""
    told(parse, text)


@settings(deadline=None)
@given(st.lists(RULES, max_size=6))
def test_check_ids_are_unique_whatever_rules_repeat(rules: list[dict[str, Any]]) -> None:
    """Repeated rules have unique ids, unless their owner gave one name twice."""
    rules_text = json.dumps(rules)
    text = contract_text(f"- {{name: c, logicalType: string, unique: true, quality: {rules_text}}}")
    names = [rule["name"] for rule in rules if "name" in rule]
    found = told(parse, text)
    assert bool(found) == (len(set(names)) < len(names))
    if not found:
        ids = {check.id for check in parse(text, "odd.yaml").checks}
        assert {f"c.{name}" for name in names} <= ids
        assert len(ids) == len(rules) + 2
