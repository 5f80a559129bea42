"""Tables and main's commits of one are listed."""

from typing import Any, cast

from access.tables.listed import listed
from access.tables.reader import TableState
from cli.tables import tables
from functions.model.notes.upkeep_note import TableUpkeep, UpkeepNote
from tests.fakes.deployment import ORDERS, TABLE, Deployment
from tests.unit.cli.shown import shown


class Main:
    """A main with two tables, as `access.tables.reader.Reader` reads it."""

    def names(self) -> list[str]:
        return [TABLE, "ops.audit_results"]

    def state(self, table: str) -> TableState:
        return TableState((), 1200, 3, 45_000, (), f"s3://lake/{table}")


def test_a_table_is_listed_with_its_contract_and_its_rows() -> None:
    """Tables of main and tables that only have a contract are listed, each once."""
    deployment, main = Deployment(), Main()
    text = ORDERS.replace("shop.orders", "shop.returns").replace("shop/orders", "shop/returns")
    deployment.lake.put_text("contracts/shop.returns.yaml", text.encode())
    reader: Any = main
    found = {each.table: each for each in listed(deployment.adapters, reader)}
    assert [*found] == ["ops.audit_results", TABLE, "shop.returns"]
    assert (found[TABLE].rows, found["shop.returns"].rows) == (1200, None)
    assert (found[TABLE].version, found["ops.audit_results"].version) == ("1.0.0", "")
    text = shown(tables.rendered([*found.values()]))
    assert f"{TABLE} 1,200 3 45,000 - - - 1.0.0 shop/orders/" in text
    assert "shop.returns - - - - - - 1.0.0" in text
    assert "before the first daily upkeep" in text


def test_a_table_is_listed_as_upkeep_found_it() -> None:
    """Share of small files, metadata and dead bytes are the last upkeep's, whose time is shown."""
    deployment, reader = Deployment(), cast(Any, Main())
    upkeep = TableUpkeep(8, 6, 1, 2_000, 30)
    deployment.ledger.save_upkeep(UpkeepNote("2026-03-01T05", "2026-02", {TABLE: upkeep}))
    found = listed(deployment.adapters, reader)
    assert [each.upkeep for each in found] == [None, upkeep]
    text = shown(tables.rendered(found))
    assert f"{TABLE} 1,200 3 45,000 75% 2,000 30 1.0.0" in text
    assert "the upkeep of 2026-03-01T05" in text
