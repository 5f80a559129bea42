"""Contracts for tests: the smallest one that is taken, with more put into it."""

import textwrap

from lakegate.contract.model import Contract, ContractInvalid, Problem, parse

HEAD = """\
kind: DataContract
apiVersion: v3.1.0
id: shop-orders
version: 1.0.0
"""


def contract_text(
    properties: str = "", *, quality: str = "", settings: str = "", head: str = HEAD
) -> str:
    """A contract for shop.orders with the required column `id`, and what is given beside it."""
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
    """The contract that `contract_text` writes."""
    return parse(contract_text(properties, quality=quality, settings=settings), "orders.yaml")


def problems_of(text: str) -> tuple[Problem, ...]:
    """The problems for which a text is refused; none when it is taken."""
    try:
        parse(text, "orders.yaml")
    except ContractInvalid as invalid:
        return invalid.problems
    return ()


def assert_refused(text: str, field: str, reason: str) -> None:
    """Hold that a text is refused at a field, for a reason that has these words."""
    found = problems_of(text)
    assert [p for p in found if p.field == field and reason in p.reason], found
