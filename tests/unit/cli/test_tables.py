"""Tables and main's commits of one are listed."""

from dataclasses import replace
from typing import Any, cast

import pytest

from access.tables import TableState
from cli.tables import tables
from functions.model.ingestion import Approval
from functions.model.merge_commit import message, properties
from functions.model.notes.upkeep_note import TableUpkeep, UpkeepNote
from lakegate.errors import LakegateError
from tests.fakes.deployment import ORDERS, TABLE, Deployment
from tests.unit.cli.cli_examples import PUBLISHED
from tests.unit.cli.test_terminal import shown


class Main:
    """A main with two tables, as `access.tables.Reader` reads it."""

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
    found = {each.table: each for each in tables.listed(deployment.adapters, reader)}
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
    found = tables.listed(deployment.adapters, reader)
    assert [each.upkeep for each in found] == [None, upkeep]
    text = shown(tables.rendered(found))
    assert f"{TABLE} 1,200 3 45,000 75% 2,000 30 1.0.0" in text
    assert "the upkeep of 2026-03-01T05" in text


@pytest.fixture
def deployment() -> Deployment:
    """Return a deployment with two published files of one table."""
    made = Deployment()
    for name in ("a", "b"):
        made.land(f"shop/orders/{name}.parquet")
        made.settle()
    return made


def test_a_log_has_the_commits_of_its_table(deployment: Deployment) -> None:
    """Main's commits of the table are listed, newest first, with what they published."""
    deployment.catalog.append("main", "shop.returns", "s3://lake/other.parquet")
    found = tables.commits(deployment.adapters, TABLE, 20)
    ours = [tables.document(each, TABLE) for each in found if "lakegate.table" in each.properties]
    assert [each["ingestions"][0]["object"][-9:] for each in ours] == ["b.parquet", "a.parquet"]
    assert all(each["rows"] > 0 for each in ours)
    assert len(tables.commits(deployment.adapters, TABLE, 1)) == 1


def test_a_decision_is_in_the_log(deployment: Deployment) -> None:
    """A commit of an approved file says by whom and why, and which command tells more."""
    approval = Approval("Ada", "a refund", "2026", ())
    members = [replace(PUBLISHED, approval=approval)]
    commit = replace(
        tables.commits(deployment.adapters, TABLE, 1)[0],
        message=message(members),
        properties=properties(members),
    )
    text = shown(tables.log_of([commit], "shop.orders"))
    assert "+1,842 Publish 1,842 rows of [red] März.csv to shop.orders" in text
    assert "approved by Ada: a refund" in text
    assert "`lakegate show 0123456789ab`" in text


def test_an_unknown_table_has_no_log(deployment: Deployment) -> None:
    """A table without a commit on main is refused with the command that lists the tables."""
    with pytest.raises(LakegateError, match="lakegate tables"):
        tables.commits(deployment.adapters, "shop.nothing", 20)
