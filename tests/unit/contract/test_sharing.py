"""Contracts whose files may be audited and appended together."""

from collections.abc import Mapping
from typing import Any

import pytest

from lakegate.contract.model import Contract, parse
from lakegate.contract.sharing import comes_in_turns, why_alone, why_own_run
from tests.spark.measuring import UNIQUE, contract_of, custom, whole_table

_ID = {"name": "id", "logicalType": "integer", "required": True, "unique": True}
_REFERENCE = {"relationships": [{"to": "shop.people.id"}]}


def _contract(
    column: Mapping[str, Any] | None = None, *rules: Mapping[str, Any], **settings: Any
) -> Contract:
    return parse(contract_of([{**_ID, **(column or {})}], rules, **settings), "test")


@pytest.mark.parametrize("format_", ["parquet", "csv", "tsv", "json"])
def test_plain_contracts_share(format_: str) -> None:
    """Keys, ranges, patterns, drift and the file's own conditions are found for many files."""
    rules = [{"metric": "rowCount", "mustBeGreaterThan": 0}, custom("drift", of="rowCount")]
    own = custom("rowExpression", expression="(2) * id > 0")
    contract = _contract({"quality": [own]}, *rules, format=format_)
    assert (why_alone(contract), why_own_run(contract)) == ("", "")


@pytest.mark.parametrize(
    ("column", "rules", "settings", "why"),
    [
        ({}, [], {"extraColumns": "add"}, "may add columns"),
        ({}, [], {"format": "avro"}, "format avro"),
        ({}, [], {"format": "csv", "options": {"encoding": "UTF-16"}}, "in UTF-16"),
        ({}, [], {"write": "spark"}, "write: spark"),
        ({}, [], {"onNewVersion": "replace"}, "replaces the rows"),
        ({}, [], {"onDuplicate": "hold"}, "known bytes"),
        ({}, [], {"transform": "SELECT id FROM file"}, "transform"),
        ({}, [whole_table({"metric": "rowCount", "mustBeGreaterThan": 0})], {}, "existing rows"),
        ({}, [custom("reconcile", mustBe=0)], {}, "control file"),
        ({}, [custom("rowExpression", expression="coalesce( *) > 0")], {}, "all columns by *"),
        ({}, [{"type": "sql", "query": "SELECT 1", "mustBe": 1}], {}, "is a query"),
        (_REFERENCE, [], {}, "keys up in a table"),
    ],
)
def test_what_looks_beyond_the_file_stays_alone(
    column: dict[str, Any], rules: list[dict[str, Any]], settings: dict[str, Any], why: str
) -> None:
    """A sentence says why each file of a contract needs an append of its own."""
    assert why in why_alone(_contract(column, *rules, **settings))


@pytest.mark.parametrize("isolation", ["own", "shared"])
def test_only_isolation_asks_for_runs_of_its_own(isolation: str) -> None:
    """Files share job runs whatever their checks read, unless the contract's isolation is own."""
    rows = whole_table({"metric": "rowCount", "mustBeGreaterThan": 0})
    contract = _contract(_REFERENCE, rows, isolation=isolation)
    assert ("isolation" in why_own_run(contract)) == (isolation == "own")


@pytest.mark.parametrize(
    ("rule", "together"),
    [
        (UNIQUE, True),
        ({**UNIQUE, "mustBe": 3}, False),
        ({"metric": "duplicateValues", "mustBeLessThan": 3}, True),
        ({"metric": "duplicateValues", "mustBeLessThan": 3, "unit": "percent"}, False),
        ({"metric": "nullValues", "mustBe": 0}, False),
    ],
)
def test_keys_of_the_table_are_looked_up_for_many_files(
    rule: Mapping[str, Any], together: bool
) -> None:
    """Files enter together if each passes where no key is there twice; a file's own keys do so."""
    contract = _contract({"quality": [whole_table(rule)]})
    assert (comes_in_turns(contract), not why_alone(contract)) == (together, together)
    assert not comes_in_turns(_contract({"quality": [rule]}))
