"""The guide for data owners, whose contracts must all be valid."""

import re
from pathlib import Path

from access.contract.check import check
from lakegate.contract.checks import Metric
from lakegate.contract.expectations import Operator
from tests.unit.contract.contract_texts import HEAD, contract_text

GUIDE = (Path(__file__).parents[3] / "docs" / "contracts.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)


def test_every_example_of_the_guide_is_taken() -> None:
    """The guide's contract is valid, and so is each column and setting beside its columns."""
    assert check(BLOCKS[0], "contracts.md").table == "shop.orders"
    price = "- {name: price, logicalType: number}"
    merged = (
        "- {name: number, logicalType: integer, primaryKey: true}\n"
        "- {name: updated_at, logicalType: timestamp, required: true}\n"
        "- {name: op, logicalType: string}\n"
    )
    for block in BLOCKS[1:]:
        if block.startswith("- property:"):
            columns = merged if "writeMode" in block else price
            text = contract_text(columns, settings=block.replace("order_id", "id"))
        elif block.startswith("slaProperties:"):
            text = contract_text(price, head=HEAD + block)
        else:
            text = contract_text(block)
        assert check(text, "contracts.md").checks


def test_the_guides_check_of_the_whole_table_is_taken() -> None:
    """The guide's example of a check of the whole table is one."""
    (block,) = [block for block in BLOCKS[1:] if "scope" in block]
    contract = check(contract_text(block), "contracts.md")
    assert [each.id for each in contract.checks if each.checks_whole_table] == [
        "receipt.duplicateValuesInTable",
        "ticket.duplicateValuesInWindow",
    ]
    assert contract.checks_whole_table


def test_the_guide_knows_every_metric_and_operator() -> None:
    """The guide names every metric and operator."""
    assert [
        word
        for word in (*set(Metric) - {Metric.DRIFT}, *Operator)
        if f"`{word}`" not in GUIDE and f"`{word}:" not in GUIDE
    ] == []
