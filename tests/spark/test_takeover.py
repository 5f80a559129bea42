"""The rows that another writer put on a branch, taken over by real Spark, Nessie and S3."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

from functions.adapters.iceberg.file_io import CLIENT
from functions.adapters.nessie import Catalog
from functions.model.commits import line_and_base
from lakegate.audit.report import AuditReport, Verdict
from lakegate.job.change import Effect, Takeover
from tests.services import Services
from tests.spark.conftest import Job, new_table, parquet, reason
from tests.spark.measuring import contract_of

pytestmark = pytest.mark.spark

COLUMNS: Sequence[dict[str, Any]] = (
    {"name": "id", "logicalType": "integer", "required": True, "unique": True},
    {
        "name": "name",
        "logicalType": "string",
        "logicalTypeOptions": {"pattern": "^n[0-9]+$"},
    },
)


@dataclass(frozen=True)
class Branch:
    """A branch of another writer, off main, with a table of which main has two files."""

    job: Job
    table: str
    name: str

    @property
    def services(self) -> Services:
        """Return the services."""
        return self.job.services

    def by_pyiceberg(self) -> Table:
        """Return the table on the branch, with the rights of other writers."""
        catalog = RestCatalog(
            "lake",
            uri=f"{self.services.nessie_uri}/iceberg/{quote(self.name, safe='')}",
            token=self.services.tokens["writer"],
            **{
                "py-io-impl": "functions.adapters.iceberg.file_io.S3FileIO",
                CLIENT: self.services.s3,
            },
        )
        return catalog.load_table(self.table)

    def append(self, **columns: Any) -> None:
        """Append rows on the branch by pyiceberg."""
        self.by_pyiceberg().append(rows(self.by_pyiceberg(), **columns))

    def sql(self, text: str) -> None:
        """Execute a statement on the branch by Spark."""
        self.job.session(self.name, "writer").sql(text.replace("TABLE_", f"lake.{self.table}"))

    def publish(self, **columns: Any) -> None:
        """Publish a file meanwhile."""
        report = self.job.ingest(parquet(columns), contract(self.table), self.table)
        self.job.publish(report)

    def taken(self, head: str = "") -> AuditReport:
        """Return the report of a takeover of the branch up to a commit, or as it is now."""
        catalog = self.services.catalog
        head = head or catalog.head(self.name)
        line, since = line_and_base(catalog.log_of(head), catalog.log())
        change = Takeover(self.name, line[-1].hash, head, since).change(self.table, "Ann")
        return self.job.run(self.job.change(change, contract(self.table)))

    def rows(self, branch: str = "main") -> list[tuple[Any, ...]]:
        """Return the rows on a branch."""
        return sorted(tuple(row.values()) for row in self.job.rows(self.table, branch))

    def files(self, branch: str) -> set[str]:
        """Return the addresses of the table's data files on a branch."""
        found = self.services.at(branch).load_table(self.table).scan().plan_files()
        return {task.file.file_path for task in found}


def contract(table: str) -> str:
    """Return the contract of a table."""
    return contract_of(list(COLUMNS), (), table)


def rows(table: Table, **columns: Any) -> pa.Table:
    """Return columns as the table's."""
    return pa.table(columns, schema=table.schema().as_arrow())


def published(job: Job) -> str:
    """Return a new table that got two files on main."""
    table = new_table()
    for columns in ({"id": [1, 2], "name": ["n1", "n2"]}, {"id": [3], "name": ["n3"]}):
        job.publish(job.ingest(parquet(columns), contract(table), table))
    return table


@pytest.fixture(scope="module")
def shared(job: Job) -> str:
    """Return a table that no test changes on main."""
    return published(job)


def branched(job: Job, table: str) -> Branch:
    """Return a new branch off main."""
    name = f"write/{uuid.uuid4().hex}"
    Catalog(job.services.nessie_uri, job.services.tokens["writer"]).create_branch(name)
    return Branch(job, table, name)


@pytest.fixture
def branch(job: Job, shared: str) -> Branch:
    """Return a branch of the test's own, off a main that stays as it is."""
    return branched(job, shared)


@pytest.fixture
def moving(job: Job) -> Branch:
    """Return a branch off a main that has a table of the test's own."""
    return branched(job, published(job))


def test_only_rows_come_and_what_main_gained_stays(moving: Branch) -> None:
    """Rows appended by pyiceberg come in files of Lakegate's, beside a file that came meanwhile."""
    moving.append(id=[4, 5], name=["n4", "n5"])
    moving.publish(id=[6], name=["n6"])
    report = moving.taken()
    assert report.verdict is Verdict.PASSED, report.reason
    assert report.effect == Effect(4, 6, 2, 0)
    theirs = moving.files(moving.name) - moving.files("main")
    assert len(theirs) == 1
    moving.job.publish(report)
    assert [id_ for id_, _ in moving.rows()] == [1, 2, 3, 4, 5, 6]
    assert moving.files("main").isdisjoint(theirs)


def test_what_the_branch_updates_and_deletes_is_replaced(moving: Branch) -> None:
    """Rows that Spark updated and deleted on the branch are so on main; others stay as they are."""
    moving.sql("UPDATE TABLE_ SET name = 'n20' WHERE id = 2")
    moving.sql("DELETE FROM TABLE_ WHERE id = 3")
    moving.publish(id=[6], name=["n6"])
    report = moving.taken()
    assert report.verdict is Verdict.PASSED, report.reason
    assert report.effect == Effect(4, 3, 1, 2)
    moving.job.publish(report)
    assert moving.rows() == [(1, "n1"), (2, "n20"), (6, "n6")]


def test_a_branch_that_breaks_the_contract_is_rejected(branch: Branch) -> None:
    """The audit is of decoded rows: it names those that break a check, and repeated keys."""
    branch.append(id=[1, 7], name=["n1", "odd"])
    report = branch.taken()
    assert report.verdict is Verdict.REJECTED
    found = {check.id: check.found for check in report.failed}
    assert len(found) == 2, found
    assert any(sample.get("name") == "odd" for each in report.failed for sample in each.samples)
    assert len(branch.rows()) == 3


def test_what_moves_after_the_request_is_not_taken_over(branch: Branch) -> None:
    """The commits are named by their hash: later ones, and the branch's end, change nothing."""
    branch.append(id=[4], name=["n4"])
    head = branch.services.catalog.head(branch.name)
    branch.append(id=[5], name=["odd"])
    Catalog(branch.services.nessie_uri, branch.services.tokens["writer"]).delete_branch(branch.name)
    assert branch.taken(head).effect == Effect(3, 4, 1, 0)


def test_both_changed_the_same_rows(moving: Branch) -> None:
    """If main rewrote a data file that the branch changed, no row of main is lost."""
    moving.sql("UPDATE TABLE_ SET name = 'n20' WHERE id = 2")
    session = moving.job.session("main", "publisher")
    session.sql(f"UPDATE lake.{moving.table} SET name = 'n10' WHERE id = 1")
    assert reason(moving.taken()).code == "TABLE_MOVED"


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("ALTER TABLE TABLE_ ADD COLUMN note STRING", "TABLE_CHANGED"),
        ("ALTER TABLE TABLE_ SET TBLPROPERTIES ('write.format.default' = 'orc')", "TABLE_CHANGED"),
        ("DROP TABLE TABLE_ | CREATE TABLE TABLE_ (id BIGINT, name STRING)", "TABLE_REPLACED"),
    ],
)
def test_only_rows_are_taken_over(branch: Branch, statement: str, code: str) -> None:
    """Other columns, properties, or another table of the name on the branch end errored."""
    for each in statement.split("|"):
        branch.sql(each)
    assert reason(branch.taken()).code == code


def test_files_elsewhere_are_refused(branch: Branch, job: Job) -> None:
    """A branch that lists another table's data file does not get its rows into this one."""
    (task, *_) = job.services.at("main").load_table(published(job)).scan().plan_files()
    with (
        branch.by_pyiceberg().transaction() as transaction,
        transaction.update_snapshot().fast_append() as update,
    ):
        update.append_data_file(task.file)
    assert reason(branch.taken()).code == "FOREIGN_FILES"


def test_rows_of_before_are_no_effect(branch: Branch) -> None:
    """A branch that only rewrote files is rejected, since no row comes or goes."""
    branch.sql("UPDATE TABLE_ SET name = name")
    assert [check.id for check in branch.taken().failed] == ["change.has_effect"]
