"""The page of one table over fakes."""

from dataclasses import dataclass
from typing import Any

from access.tables.reader import TableState
from dashboard.pages import table as table_page
from functions.model.notes.freshness import Freshness
from functions.operations.decisions.failed import discard
from tests.fakes.deployment import ORDERS, OTHER_TABLE, TABLE, Deployment
from tests.fakes.job import passed, rejected
from tests.unit.dashboard.test_page_views import everything, seen


@dataclass(frozen=True)
class FakeReader:
    """A reader of main with one table."""

    def state(self, table: str) -> TableState:
        """See Reader.state."""
        assert table == TABLE
        return TableState((), rows=3, files=2, size=3_000, partitioned_by=(), location="s3://lake")

    def names(self) -> list[str]:
        """See Reader.names."""
        return [TABLE]


@dataclass(frozen=True)
class FakeTables:
    """An access.deployment.deployment.Deployment whose main has one table."""

    def reader(self, reference: str) -> FakeReader:
        """See Deployment.reader."""
        assert reference == "main"
        return FakeReader()


def view(made: Deployment, **address: str) -> Any:
    """Return the view of a table."""
    return seen(table_page.show, made, FakeTables(), **address)


def test_a_table_shows_its_failures_its_files_and_its_freshness() -> None:
    """A table has the files that need a decision, its newest files, and when the next is due."""
    made = Deployment()
    made.batch("other", {"r.csv": OTHER_TABLE}, rejected)
    made.land("shop/orders/good.csv", script=passed)
    bad = made.land("shop/orders/bad.csv", script=rejected)
    made.settle()
    made.ledger.save_freshness(Freshness(made.clock.now(), {TABLE: made.clock.now()}))
    made.clock.pass_(7_200)
    app = view(made, name=TABLE)
    shown = everything(app)
    labels = [link.proto.label for link in app.get("page_link")]
    assert [title.value for title in app.title] == [f"`{TABLE}`"]
    assert "Needs a decision" in shown
    assert labels.count(f"`{TABLE}` `bad.csv`") == 2  # once to decide on, once of the newest
    assert f"`{TABLE}` `good.csv`" in labels
    assert OTHER_TABLE not in "".join(labels)
    assert "expected every 3,650 days; the last one came 2 h ago" in shown
    assert {each.label: each.value for each in app.metric}["mean file"] == "1.5 KB"
    discard(made.adapters, made.ingestion(bad), by="Ann")
    assert "Needs a decision" not in everything(view(made, name=TABLE))


def test_a_contract_without_service_levels_expects_nothing() -> None:
    """Without `slaProperties` in the contract the view says nothing about the next file."""
    made = Deployment()
    plain = ORDERS.replace("slaProperties: [{property: frequency, value: 10, unit: y}]\n", "")
    made.lake.put_text(f"contracts/{TABLE}.yaml", plain.encode())
    assert "expected" not in everything(view(made, name=TABLE))


def test_without_a_name_the_tables_are_listed() -> None:
    """Without a name in the address the view lists main's tables."""
    app = view(Deployment())
    assert [link.proto.label for link in app.get("page_link")] == [f"`{TABLE}`"]
    assert [title.value for title in app.title] == ["Tables on main"]
