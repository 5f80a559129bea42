"""A table gets the rows of an earlier commit back, over real Spark, Nessie and S3."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan

from lakegate.audit.report import AuditReport, Verdict
from lakegate.job.change import Effect, restoration
from tests.spark.conftest import Job, new_table, parquet, reason
from tests.spark.measuring import contract_of

pytestmark = pytest.mark.spark

COLUMNS: dict[str, dict[str, Any]] = {
    "id": {"logicalType": "integer", "required": True, "unique": True},
    "name": {"logicalType": "string", "logicalTypeOptions": {"pattern": "^n[0-9]+$"}},
}
KEYED = {"id": {"logicalType": "integer", "primaryKey": True, "primaryKeyPosition": 1}}
NEW = {"note": {"logicalType": "string"}}


@dataclass(frozen=True)
class Lake:
    """A table whose commits on main can be gone back to."""

    job: Job
    table: str

    def contract(self, columns: Mapping[str, Any] = COLUMNS, **settings: Any) -> str:
        """Return the table's contract."""
        named = [{"name": name, **each} for name, each in columns.items()]
        return contract_of(named, (), self.table, **settings)

    def publish(self, contract: str = "", **columns: Any) -> str:
        """Publish a file; return main's commit."""
        report = self.job.ingest(parquet(columns), contract or self.contract(), self.table)
        return self.job.publish(report)

    def restore(self, to: str, contract: str = "") -> AuditReport:
        """Run a restoration to a commit of main, and return its report."""
        head, token = self.job.services.catalog.head("main"), uuid.uuid4().hex
        change = restoration(self.table, to, head, "Ann", token)
        return self.job.run(self.job.change(change, contract or self.contract()))

    def rows(self, branch: str = "main") -> list[tuple[Any, ...]]:
        """Return the rows on a branch."""
        return sorted(tuple(row.values()) for row in self.job.rows(self.table, branch))

    def files(self, branch: str = "main") -> set[str]:
        """Return the addresses of the table's data files on a branch."""
        found = self.job.services.at(branch).load_table(self.table).scan().plan_files()
        return {task.file.file_path for task in found}


@pytest.fixture
def lake(job: Job) -> Lake:
    """Return a table of the test's own."""
    return Lake(job, new_table())


def test_files_are_undone_and_that_is_undone(lake: Lake) -> None:
    """What came since goes, what was there stays in its data files; and both can be undone."""
    first = lake.publish(id=[1, 2], name=["n1", "n2"])
    kept = lake.files()
    second = lake.publish(id=[3], name=["n3"])
    report = lake.restore(first)
    assert report.verdict is Verdict.PASSED, report.reason
    assert report.effect == Effect(3, 2, 0, 1)
    assert lake.files(report.branch) == kept
    lake.job.publish(report)
    assert lake.rows() == [(1, "n1"), (2, "n2")]
    again = lake.restore(second)
    assert again.effect == Effect(2, 3, 1, 0)
    lake.job.publish(again)
    assert lake.rows() == [(1, "n1"), (2, "n2"), (3, "n3")]


def test_replaced_rows_come_back(lake: Lake) -> None:
    """Rows that an upsert replaced are as before, and only rows that differ count."""
    keyed = lake.contract(COLUMNS | KEYED, writeMode="upsert")
    first = lake.publish(keyed, id=[1, 2, 3], name=["n1", "n2", "n3"])
    before = lake.files()
    lake.publish(keyed, id=[2, 4], name=["n20", "n40"])
    report = lake.restore(first, keyed)
    assert report.verdict is Verdict.PASSED, report.reason
    assert report.effect == Effect(4, 3, 1, 2)
    assert lake.files(report.branch).isdisjoint(before)
    lake.job.publish(report)
    assert lake.rows() == [(1, "n1"), (2, "n2"), (3, "n3")]


def test_rows_come_back_in_the_layout_of_the_table(lake: Lake) -> None:
    """Each partition has its rows in data files of its own, in the table's order."""
    columns = {**COLUMNS, "name": {**COLUMNS["name"], "partitioned": True}}
    keyed = lake.contract(columns | KEYED, writeMode="upsert", sortOrder=["id desc"])
    ids, names = [*range(40)], [f"n{number % 3}" for number in range(40)]
    lake.publish(keyed, id=ids[:20], name=names[:20])
    second = lake.publish(keyed, id=ids[20:], name=names[20:])
    lake.publish(keyed, id=ids, name=["n3"] * 40)
    report = lake.restore(second, keyed)
    assert report.verdict is Verdict.PASSED, report.reason
    assert lake.rows(report.branch) == list(zip(ids, names, strict=True))
    table = lake.job.services.at(report.branch).load_table(lake.table)
    for task in table.scan().plan_files():
        scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
        file = scan.to_table([task]).to_pylist()
        assert len({row["name"] for row in file}) == 1
        found = [row["id"] for row in file]
        assert found == sorted(found, reverse=True)


def test_older_rows_have_null_in_newer_columns(lake: Lake) -> None:
    """The columns of now stay: rows from before them have nulls there."""
    keyed = lake.contract(COLUMNS | KEYED, writeMode="upsert")
    first = lake.publish(keyed, id=[1], name=["n1"])
    wider = lake.contract(COLUMNS | KEYED | NEW, writeMode="upsert")
    lake.publish(wider, id=[1], name=["n10"], note=["why"])
    report = lake.restore(first, wider)
    assert report.verdict is Verdict.PASSED, report.reason
    assert lake.rows(report.branch) == [(1, "n1", None)]


def test_rows_that_the_contract_rejects_now_do_not_come_back(lake: Lake) -> None:
    """The audit judges the whole table by the contract in force, and names the rows."""
    lax = {**COLUMNS, **KEYED, "name": {"logicalType": "string"}}
    first = lake.publish(lake.contract(lax, writeMode="upsert"), id=[1, 2], name=["odd", "n2"])
    strict = lake.contract(COLUMNS | KEYED, writeMode="upsert")
    lake.publish(strict, id=[1], name=["n1"])
    report = lake.restore(first, strict)
    assert report.verdict is Verdict.REJECTED
    (check,) = report.failed
    assert (check.found, check.samples[0]["name"]) == ("1 row", "odd")


def test_the_rows_of_now_are_no_effect(lake: Lake) -> None:
    """A restoration that changes no row is rejected, though data files were written anew."""
    first = lake.publish(id=[1], name=["n1"])
    session = lake.job.session("main", "publisher")
    session.sql(f"UPDATE lake.{lake.table} SET name = name")
    report = lake.restore(first)
    assert [check.id for check in report.failed] == ["change.has_effect"]


def test_another_table_of_the_name_is_no_past(lake: Lake) -> None:
    """A table that was dropped and made again does not get the rows of the dropped one."""
    first = lake.publish(id=[1], name=["n1"])
    lake.job.session("main", "publisher").sql(f"DROP TABLE lake.{lake.table}")
    lake.publish(id=[2], name=["n2"])
    report = lake.restore(first)
    assert reason(report).code == "TABLE_REPLACED"
