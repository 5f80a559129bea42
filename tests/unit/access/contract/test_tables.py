"""Contracts of several tables: each is a contract of its own, with its lines in the file."""

from pathlib import Path

import pytest

from access.contract.check import checked, checked_one, named
from access.contract.tables import by_table
from lakegate.contract.model import ContractInvalid
from lakegate.errors import LakegateError
from lakegate.limits import DEFAULTS
from tests.unit.contract.contract_texts import HEAD

ORDERS = """\
  - name: shop.orders
    # what customers ordered
    properties:
      - {name: id, logicalType: integer, required: true}
"""
LINES = """\
  - name: shop.lines
    properties:
      - {name: pieces, logicalType: integer, required: true}
"""
TAIL = """\
support:
  - {channel: "#shop", tool: slack}
"""
BOTH = f"{HEAD}schema:\n{ORDERS}{LINES}{TAIL}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "shop.yaml"


@pytest.mark.parametrize("text", [BOTH, f"{HEAD}{TAIL}schema:\n{ORDERS}{LINES}"])
def test_each_table_is_a_contract(file: Path, text: str) -> None:
    """Every table has what the contract says of all, and its own columns at their lines."""
    file.write_text(text)
    orders, lines = (each.valid() for each in checked(file, DEFAULTS))
    assert (orders.table, lines.table) == ("shop.orders", "shop.lines")
    assert orders.channel == lines.channel == "#shop"
    assert (orders.columns[0].name, lines.columns[0].name) == ("id", "pieces")
    place = text.splitlines().index("      - {name: pieces, logicalType: integer, required: true}")
    assert lines.columns[0].line == place + 1


def test_a_change_of_one_table_is_none_of_another() -> None:
    """Another table's lines are not in a table's text, so they change nothing in it."""
    changed = BOTH.replace("name: pieces", "name: amount")
    (orders, lines), (same, other) = (by_table(t, "a", DEFAULTS) for t in (BOTH, changed))
    assert orders == same
    assert lines != other


def test_one_table_is_the_text_itself() -> None:
    """A contract of one table stays as its owner wrote it, comments included."""
    text = f"{HEAD}schema:\n{ORDERS}"
    assert by_table(text, "a", DEFAULTS) == [text]


@pytest.mark.parametrize(
    "schema",
    [
        "schema: [{name: a.b, properties: []}, {name: c.d, properties: []}]\n",
        "schema:\n  - &a {name: a.b, properties: []}\n  - *a\n",
        "schema:\n  -\n    name: a.b\n  -\n    name: c.d\n",
    ],
)
def test_tables_that_share_lines_are_refused(schema: str) -> None:
    """Where no lines are a table's alone, the text is refused with the remedy."""
    with pytest.raises(ContractInvalid, match="begin each table on a line of its own"):
        by_table(HEAD + schema, "a", DEFAULTS)


def test_each_problem_has_its_line_in_the_file(file: Path) -> None:
    """A mistake in one table is its line's, and leaves the other table's contract valid."""
    file.write_text(BOTH.replace("pieces, logicalType: integer", "pieces, logicalType: int"))
    orders, lines = checked(file, DEFAULTS)
    assert orders.valid().table == "shop.orders"
    (problem,) = lines.problems
    assert (problem.line, problem.field) == (12, "schema[1].properties[0].logicalType")
    assert "line 12: schema[1].properties[0].logicalType" in lines.refusal


def test_a_table_that_is_described_twice_is_refused(file: Path) -> None:
    """Two descriptions of one table clash, as those in two files do."""
    file.write_text(BOTH.replace("shop.lines", "shop.orders"))
    with pytest.raises(LakegateError, match=r"describes the table shop\.orders twice"):
        named(checked(file, DEFAULTS))


def test_one_of_several_is_named(file: Path) -> None:
    """A command about one table asks which one, unless it was named."""
    file.write_text(BOTH)
    assert checked_one(file, DEFAULTS, "shop.lines").valid().table == "shop.lines"
    with pytest.raises(LakegateError, match=r"shop\.orders, shop\.lines: name one"):
        checked_one(file, DEFAULTS)
    file.write_text(f"{HEAD}schema:\n{ORDERS}")
    assert checked_one(file, DEFAULTS).valid().table == "shop.orders"


def test_a_table_that_comes_twice_cannot_be_named(file: Path) -> None:
    """No --table tells two descriptions of one table apart: what is said is that there are two."""
    file.write_text(f"{HEAD}schema:\n{ORDERS}{ORDERS}")
    with pytest.raises(LakegateError, match=r"describes the table shop\.orders twice"):
        checked_one(file, DEFAULTS, "shop.orders")


@pytest.mark.parametrize(
    ("to", "hinted"),
    [("orders.number", True), ("shop.orders_v2.order_id", False), ("shop.others.id", False)],
)
def test_a_reference_by_a_name_of_the_contract_alone_is_a_hint(
    file: Path, to: str, *, hinted: bool
) -> None:
    """A reference is looked up in the lake, where another table here may be called otherwise."""
    orders = ORDERS.replace("shop.orders", "orders\n    physicalName: shop.orders_v2")
    orders = orders.replace("name: id", "name: number, physicalName: order_id")
    lines = LINES.replace("required: true", f"relationships: [{{to: {to}}}]")
    file.write_text(f"{HEAD}schema:\n{orders}{lines}{TAIL}")
    hints = [each for each in checked(file, DEFAULTS)[1].hints if each.field == "relationships"]
    assert bool(hints) is hinted
    for hint in hints:
        assert hint.line == file.read_text().splitlines().index(lines.splitlines()[-1]) + 1
        assert hint.reason.endswith("is stored as shop.orders_v2.order_id: write that")
