"""Confidential columns of the contract of an audit, and of the contract in force."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from access.evidence.failing_rows import Question, concealment, inspection
from access.ingestions.shown_report import Concealment
from lakegate.contract.model import Contract, parse
from tests.fakes.deployment import Deployment
from tests.fakes.job import FAILED, rejected
from tests.unit.contract.contract_texts import HEAD

KEY = "contracts/shop.orders.yaml"
CONTRACT = (
    HEAD
    + """\
customProperties: [{{property: allowSamples, value: {samples}}}]
schema:
  - name: shop.orders
    properties:
      - {{name: id, logicalType: integer, required: true, classification: {id_}}}
      - name: customer
        logicalType: object
        properties:
          - {{name: city, logicalType: string}}
          - {{name: email, logicalType: string, classification: {email}}}
"""
)


def text(samples: str = "true", id_: str = "public", email: str = "public") -> str:
    return CONTRACT.format(samples=samples, id_=id_, email=email)


def contract(**terms: str) -> Contract:
    return parse(text(**terms), "orders")


def test_a_part_conceals_the_whole() -> None:
    """A column with a confidential part is hidden completely."""
    assert contract(email="confidential").concealed == {"customer"}
    assert contract().concealed == frozenset()


@pytest.mark.parametrize(
    ("now", "hidden"),
    [
        (text(), Concealment(every=False, columns=frozenset({"id"}))),
        (text(email="restricted"), Concealment(every=False, columns=frozenset({"id", "customer"}))),
        (text(samples="false"), Concealment(every=True, columns=frozenset({"id"}))),
    ],
)
def test_either_contract_conceals(now: str, hidden: Concealment) -> None:
    """A column is hidden if either contract calls it confidential."""
    deployment = Deployment()
    deployment.lake.put_text(KEY, now.encode())
    assert concealment(deployment.adapters, contract(id_="confidential"), KEY) == hidden


def test_without_a_contract_in_force_the_old_one_counts() -> None:
    """Without a contract in force, the contract of the audit decides."""
    found = concealment(Deployment().adapters, contract(id_="confidential"), "contracts/gone.yaml")
    assert found == Concealment(every=False, columns=frozenset({"id"}))


def test_rows_of_a_check_that_the_contract_has_no_more_are_hidden_too() -> None:
    """Where the bucket keeps no version of the contract, the one in force is all there is."""
    gone = replace(FAILED, id="gone", samples=({"id": "7", "name": "Ann"},))
    deployment = Deployment()
    landed = deployment.land(
        "shop/orders/a.csv", script=lambda run: replace(rejected(run), checks=(gone,))
    )
    deployment.settle()
    one = deployment.ingestion(landed)
    unversioned = replace(one, terms=replace(one.terms, contract_version=""))
    deployment.lake.put_text(KEY, text(id_="confidential").encode())
    evidence: Any = SimpleNamespace(files=())
    (found,) = inspection(
        deployment.adapters, unversioned, Question(), lambda _: nullcontext(evidence)
    ).findings
    assert found.rows == ({"id": "(hidden)", "name": "Ann"},)


def test_a_column_is_concealed_however_it_is_spelt() -> None:
    """A confidential column is hidden in any spelling."""
    deployment = Deployment()
    deployment.lake.put_text(KEY, text(id_="confidential").replace("name: id", "name: ID").encode())
    found = concealment(deployment.adapters, contract(), KEY)
    assert found.hides("id")
    assert found.hides("Id")
    assert not found.hides("customer")
