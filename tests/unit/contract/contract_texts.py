"""Contracts for tests: the smallest valid contract, and ways to extend it."""

import textwrap
from functools import cache

from jsonschema import Draft201909Validator

from access.contract.editor_schema import contract_schema
from lakegate.contract.model import Contract, ContractInvalid, Problem, parse
from lakegate.contract.text.yaml import load

HEAD = """\
kind: DataContract
apiVersion: v3.1.0
id: shop-orders
version: 1.0.0
"""


def contract_text(
    properties: str = "", *, quality: str = "", settings: str = "", head: str = HEAD
) -> str:
    """Return a contract for shop.orders with the required column `id` and the given parts."""
    parts = [
        head,
        f"customProperties:\n{textwrap.indent(settings, '  ')}" if settings else "",
        "schema:\n  - name: shop.orders\n",
        f"    quality:\n{textwrap.indent(quality, '      ')}" if quality else "",
        "    properties:\n      - {name: id, logicalType: integer, required: true}\n",
        textwrap.indent(properties, "      "),
    ]
    return "\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def parsed(properties: str = "", *, quality: str = "", settings: str = "") -> Contract:
    """Return the parsed contract of `contract_text`, which editors take as well."""
    text = contract_text(properties, quality=quality, settings=settings)
    contract = parse(text, "orders.yaml")
    assert editor_problems(text) == []
    return contract


def editor_problems(text: str) -> list[str]:
    """Return what an editor refuses in a contract: paths and reasons."""
    errors = _validator().iter_errors(load(text, "orders.yaml", []).plain())
    return [f"{error.json_path}: {error.message}" for error in errors]


@cache
def _validator() -> Draft201909Validator:
    return Draft201909Validator(contract_schema())


def problems_of(text: str) -> tuple[Problem, ...]:
    """Return the problems for which a text is refused, or none if it is valid."""
    try:
        parse(text, "orders.yaml")
    except ContractInvalid as invalid:
        return invalid.problems
    return ()


def assert_refused(text: str, field: str, reason: str) -> None:
    """Assert that a text is refused at a field, for a reason with these words."""
    found = problems_of(text)
    assert [p for p in found if p.field == field and reason in p.reason], found
