"""Contracts whose files may be audited and appended together."""

from collections.abc import Mapping
from typing import Any

import pytest

from functions.model.contract_terms import ContractTerms
from lakegate.contract.model import Contract, parse
from lakegate.contract.sharing import why_alone, why_own_run
from tests.spark.measuring import contract_of, custom, whole_table

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
    own = custom("rowExpression", expression="id > 0")
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
        ({}, [{"type": "sql", "query": "SELECT 1", "mustBe": 1}], {}, "is a query"),
        (_REFERENCE, [], {}, "keys up in a table"),
    ],
)
def test_what_looks_beyond_the_file_stays_alone(
    column: dict[str, Any], rules: list[dict[str, Any]], settings: dict[str, Any], why: str
) -> None:
    """A sentence says why each file of a contract needs an append of its own."""
    assert why in why_alone(_contract(column, *rules, **settings))


@pytest.mark.parametrize(
    ("column", "rules", "settings", "why"),
    [
        ({}, [], {"isolation": "own"}, "isolation"),
        ({}, [whole_table({"metric": "rowCount", "mustBeGreaterThan": 0})], {}, "existing rows"),
        ({}, [{"type": "sql", "query": "SELECT 1", "mustBe": 1}], {}, ""),
        (_REFERENCE, [], {}, ""),
        ({}, [custom("reconcile", mustBe=0)], {}, ""),
        ({}, [], {"transform": "SELECT id FROM file"}, ""),
        ({}, [], {"isolation": "shared"}, ""),
    ],
)
def test_what_reads_its_table_or_asks_for_it_has_runs_of_its_own(
    column: dict[str, Any], rules: list[dict[str, Any]], settings: dict[str, Any], why: str
) -> None:
    """There is a reason for a job run of its own if and only if the ledger's terms require it."""
    contract = _contract(column, *rules, **settings)
    terms = ContractTerms.of(contract, "key", "version", is_change=False)
    required = terms.isolation == "own" or terms.checks_whole_table
    assert bool(why_own_run(contract)) == required == bool(why)
    assert why in why_own_run(contract)
