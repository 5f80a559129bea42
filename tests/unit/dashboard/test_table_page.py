"""The page of one table over fakes."""

from dataclasses import dataclass
from typing import Any

from access.tables.reader import Column, TableState
from dashboard.views import table as table_page
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
        columns = (Column("id", "long", required=True, about=""),)
        return TableState(
            columns, rows=3, files=2, size=3_000, partitioned_by=(), location="s3://lake"
        )

    def has(self, table: str) -> bool:
        """See Reader.has."""
        return table == TABLE

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
    grids = [each.value for each in app.dataframe if "file" in each.value]
    assert [title.value for title in app.title] == [f"`{TABLE}`"]
    assert "Needs a decision" in shown
    assert [list(grid["file"]) for grid in grids] == [["bad.csv"], ["bad.csv", "good.csv"]]
    assert {table for grid in grids for table in grid["table"]} == {TABLE}
    assert "expected every 3,650 days; none has come for 2 h" in shown
    assert {each.label: each.value for each in app.metric}["mean file"] == "1.5 KB"
    discard(made.adapters, made.ingestion(bad), by="Ann")
    assert "Needs a decision" not in everything(view(made, name=TABLE))


def test_a_table_that_main_has_not_yet_shows_its_contract_and_its_failures() -> None:
    """The first files of a new table may fail, and each of them links to the table."""
    made = Deployment()
    made.batch("new", {"r.csv": OTHER_TABLE}, rejected)
    made.settle()
    app = view(made, name=OTHER_TABLE)
    shown = everything(app)
    assert "Main has no such table yet" in shown
    assert "Needs a decision" in shown
    assert ["batch new"] in [list(g.value["file"]) for g in app.dataframe if "file" in g.value]
    assert "Files under shop/returns/" in shown


def test_a_column_has_the_rules_of_the_contract() -> None:
    """The columns' tab has what the contract demands of each: required, key, and its checks."""
    made = Deployment()
    made.lake.put_text(f"contracts/{TABLE}.yaml", ORDERS.encode())
    (columns,) = (g.value for g in view(made, name=TABLE).dataframe if "rules" in g.value)
    (row,) = columns.to_dict("records")
    assert (row["column"], row["required"], row["confidential"]) == ("id", "yes", "")
    assert "rows without id: 0 rows" in row["rules"]


def test_rows_before_another_writer_are_not_guessed() -> None:
    """Main's log does not say how many rows another writer brought."""
    made = Deployment()
    made.land("shop/orders/first.csv", script=passed)
    made.settle()
    made.others.append(TABLE)
    made.land("shop/orders/second.csv", script=passed)
    made.settle()
    (commits,) = (g.value for g in view(made, name=TABLE).dataframe if "rows after" in g.value)
    assert list(commits["rows after"]) == ["3", "others wrote since"]
    made.others.append(TABLE)
    (commits,) = (g.value for g in view(made, name=TABLE).dataframe if "rows after" in g.value)
    assert list(commits["rows after"]) == ["others wrote since"] * 2


def test_a_contract_without_service_levels_expects_nothing() -> None:
    """Without `slaProperties` in the contract the view says nothing about the next file."""
    made = Deployment()
    plain = ORDERS.replace("slaProperties: [{property: frequency, value: 10, unit: y}]\n", "")
    made.lake.put_text(f"contracts/{TABLE}.yaml", plain.encode())
    assert "expected" not in everything(view(made, name=TABLE))


def test_a_table_is_listed_as_late_since_its_file_was_due() -> None:
    """In the list a table is late since its next file was due, not since the last one came."""
    made = Deployment()
    made.lake.put_text(f"contracts/{TABLE}.yaml", ORDERS.replace("unit: y", "unit: h").encode())
    last = made.clock.now()
    made.ledger.save_freshness(Freshness(last, {TABLE: last}, (TABLE,)))
    made.clock.pass_(13 * 3_600)
    assert view(made).dataframe[0].value.iloc[0]["late"] == "since 3 h ago"


def test_without_a_name_the_tables_are_listed() -> None:
    """Without a name the view has a row for each table of main: what landed, passed and waits."""
    made = Deployment()
    assert view(made).dataframe[0].value.iloc[0]["passed"] is None
    for name, script in (("a", passed), ("b", passed), ("c", rejected), ("d", passed)):
        made.land(f"shop/orders/{name}.csv", script=script)
    made.settle()
    app = view(made)
    (row,) = app.dataframe[0].value.to_dict("records")
    assert (row["table"], row["passed"], row["need a decision"]) == (TABLE, 0.75, 1)
    assert (len(row["files a day"]), sum(row["files a day"])) == (31, 4)
    assert [title.value for title in app.title] == ["Tables on main"]
