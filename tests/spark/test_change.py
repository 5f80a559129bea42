"""Changes of a table over real Spark, Nessie and S3."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from infra.local.settings import LAKE_BUCKET
from lakegate.audit.failing_rows import told
from lakegate.audit.report import AuditReport, Status, Verdict
from lakegate.errors import Permanent
from lakegate.job.change import Change, Effect
from lakegate.job.jobspec import JobSpec
from spark_jobs.changes.statement import read_statement
from tests.services import fresh_session
from tests.spark.conftest import Job, new_table, parquet, reason
from tests.spark.measuring import UNIQUE, contract_of, whole_table

pytestmark = pytest.mark.spark

MERGE = """
MERGE INTO {t} AS t
USING (SELECT * FROM VALUES (1L, 'n10'), (7L, 'n70') AS given (id, name)) AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET name = s.name
WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)
WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN DELETE
"""

ONLY_NEW = """
MERGE INTO {t} AS t USING (SELECT explode(array(3L, 7L)) AS id) AS s ON t.id = s.id
WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'n7')
"""

TWICE = """
MERGE INTO {t} AS t USING (SELECT explode(array(1, 1)) AS id) AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET name = 'n'
"""

ROW_COUNT = {"metric": "rowCount", "mustBeGreaterThan": 100}
COLUMNS: dict[str, dict[str, Any]] = {
    "id": {"logicalType": "integer", "required": True, "unique": True},
    "name": {"logicalType": "string", "logicalTypeOptions": {"pattern": "^n[0-9]+$"}},
    "day": {"logicalType": "date"},
}


@dataclass(frozen=True)
class Gate:
    """A table with the ids 1, 2 and 3 on main, and changes of it."""

    job: Job
    table: str

    def publish(self, ids: list[int]) -> None:
        """Publish a file with these ids."""
        body = parquet({"id": ids, "name": [f"n{i}" for i in ids], "day": [None] * len(ids)})
        self.job.publish(self.job.ingest(body, self.contract(), self.table))

    def contract(self, *rules: Mapping[str, Any], **columns: Mapping[str, Any]) -> str:
        """Return the table's contract with rules, and with other properties of some columns."""
        named = {**COLUMNS, **columns}.items()
        return contract_of([{"name": n, **each} for n, each in named], rules, self.table)

    def spec(self, statement: str, contract: str = "") -> JobSpec:
        """Return the job spec of a change; {t} in the statement is the table's name."""
        text, token = statement.replace("{t}", self.table), uuid.uuid4().hex
        change = Change(self.table, text, token, "Ann", "why not")
        return self.job.change(change, contract or self.contract())

    def change(self, statement: str, contract: str = "") -> AuditReport:
        """Run a change and return its report."""
        return self.job.run(self.spec(statement, contract))

    def rows(self, branch: str) -> list[tuple[Any, ...]]:
        return sorted((row["id"], row["name"]) for row in self.job.rows(self.table, branch))


def new_gate(job: Job) -> Gate:
    gate = Gate(job, new_table())
    gate.publish([1, 2, 3])
    return gate


@pytest.fixture(scope="module")
def shared(job: Job) -> Gate:
    """Return a table that no test changes on main."""
    return new_gate(job)


@pytest.fixture
def gate(job: Job) -> Gate:
    """Return a table of the test's own."""
    return new_gate(job)


def failed(report: AuditReport) -> list[tuple[str, str]]:
    return [(check.id, check.found) for check in report.failed]


@pytest.mark.parametrize(
    ("statement", "effect", "rows"),
    [
        ("DELETE FROM {t} WHERE id > 1", Effect(3, 1, 0, 2), [(1, "n1")]),
        (
            "UPDATE {t} SET id = id + 1 WHERE id IN (SELECT max(id) FROM main.{t})",
            Effect(3, 3, 1, 1),
            [(1, "n1"), (2, "n2"), (4, "n3")],
        ),
        (MERGE, Effect(3, 3, 2, 2), [(1, "n10"), (3, "n3"), (7, "n70")]),
        (ONLY_NEW, Effect(3, 4, 1, 0), [(1, "n1"), (2, "n2"), (3, "n3"), (7, "n7")]),
        ("DELETE FROM lake.{t} AS t WHERE t.id = 2;", Effect(3, 2, 0, 1), [(1, "n1"), (3, "n3")]),
    ],
)
def test_a_change_is_made_on_its_branch(
    shared: Gate, statement: str, effect: Effect, rows: list[tuple[Any, ...]]
) -> None:
    """The statement changes the branch only, and the report counts the rows."""
    report = shared.change(statement)
    assert report.verdict is Verdict.PASSED, report.reason
    assert (report.effect, report.rows_written) == (effect, effect.added)
    assert shared.rows(report.branch) == rows
    assert shared.rows("main") == [(1, "n1"), (2, "n2"), (3, "n3")]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("DROP TABLE {t}", "DropTable"),
        ("ALTER TABLE {t} DROP COLUMN name", "DropColumns"),
        ("INSERT INTO {t} VALUES (9, 'n9', NULL)", "InsertIntoStatement"),
        ("INSERT OVERWRITE {t} SELECT * FROM {t}", "InsertIntoStatement"),
        ("TRUNCATE TABLE {t}", "TruncateTable"),
        ("SELECT 1", "Project"),
        ("BEGIN DELETE FROM {t}; DROP TABLE {t}; END", "CompoundBody"),
        ("EXECUTE IMMEDIATE 'DROP TABLE {t}'", "UnresolvedExecuteImmediate"),
        ("DELETE FROM {t}; DELETE FROM {t}", "extra input"),
        ("WITH q AS (SELECT 1 AS a) DELETE FROM {t} WHERE id IN (SELECT a FROM q)", "subquery"),
        ("DELETE FROM other.{t}", "changes other.tests.t"),
        ("DELETE FROM tests.elsewhere", "changes tests.elsewhere"),
        ("DELETE FROM main.{t}", "changes main."),
        ("DELETE FROM IDENTIFIER('{t}')", "changes something else"),
        (TWICE.replace("MERGE", "MERGE WITH SCHEMA EVOLUTION"), "SCHEMA EVOLUTION"),
        ("DELETE FORM {t}", "FORM"),
        ("UPDATE {t} SET größe = 1", "back quoted"),
    ],
)
def test_anything_else_is_refused(job: Job, statement: str, why: str) -> None:
    """SQL other than one DELETE, UPDATE or MERGE of the table is refused with the reason."""
    change = Change("tests.t", statement.replace("{t}", "tests.t"), "t")
    with pytest.raises(Permanent, match="BAD_STATEMENT") as caught:
        read_statement(fresh_session(job.warm_spark), change)
    assert why in caught.value.message
    assert not any(part in caught.value.message for part in ("== SQL", "\n"))


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("DELETE FROM {t} WHERE id = :id", "parameter"),
        ("DELETE FROM {t} WHERE nothing = 1", "nothing"),
        ("UPDATE {t} SET id = 'x'", "cast"),
        ("UPDATE {t} SET id = id DIV (id - 1)", "ZERO"),
        ("DELETE FROM {t} WHERE id IN (SELECT id FROM parquet.`s3a://elsewhere/x`)", "parquet"),
        (TWICE, "multiple rows"),
    ],
)
def test_a_refused_statement_changes_nothing(shared: Gate, statement: str, why: str) -> None:
    """A statement that Spark refuses ends errored, and the branch stays unchanged."""
    report = shared.change(statement)
    assert report.verdict is Verdict.ERRORED
    assert reason(report).code in ("BAD_STATEMENT", "BAD_VALUE")
    assert why in reason(report).message
    assert "== SQL" not in reason(report).message
    assert shared.rows(report.branch) == [(1, "n1"), (2, "n2"), (3, "n3")]


def test_every_check_covers_the_whole_table(gate: Gate) -> None:
    """Checks count rows that were on main before as well as changed ones.

    A change fails only if it adds duplicates to those that files may have among each other.
    """
    repeated = gate.change("UPDATE {t} SET id = 1 WHERE id = 3")
    assert [check.counted for check in repeated.failed] == [1]
    gate.publish([1, 4, 5])
    broken = gate.change("UPDATE {t} SET name = 'bad' WHERE id = 4")
    assert broken.verdict is Verdict.REJECTED
    (check,) = broken.failed
    assert (check.found, check.samples[0]["name"]) == ("1 row", "bad")
    fewer = gate.change("DELETE FROM {t} WHERE id = 5")
    assert fewer.verdict is Verdict.PASSED
    (warning,) = [check for check in fewer.checks if check.status is Status.WARN]
    assert warning.message == "rows that repeat another row's id; before the change it was 1"
    more = gate.change("UPDATE {t} SET id = 1 WHERE id = 5")
    assert [check.counted for check in more.failed] == [2]


def test_a_check_of_a_table_is_evaluated_after_the_change(shared: Gate) -> None:
    """A row count of the table is checked after the change, and one of a file is skipped."""
    rows = whole_table({"metric": "rowCount", "mustBeGreaterThan": 2})
    report = shared.change("DELETE FROM {t} WHERE id = 1", shared.contract(ROW_COUNT, rows))
    assert failed(report) == [("rowCountInTable", "2 rows in the whole table")]
    assert skipped(report) == ["not evaluated on a whole table: it counts the rows of one file"]
    tiers = {check.metric: check.tier for check in report.checks}
    assert tiers["nullValues"] == "scan"
    assert tiers["invalidValues"] == "scan"
    assert tiers["duplicateValues"] == "keys"


def skipped(report: AuditReport) -> list[str]:
    return [check.message for check in report.checks if check.status is Status.SKIPPED]


def test_a_change_without_any_check_is_errored(shared: Gate) -> None:
    """A contract whose checks all concern files audits nothing, so the change is errored."""
    plain = {name: {"logicalType": each["logicalType"]} for name, each in COLUMNS.items()}
    bare = shared.contract(ROW_COUNT, **plain)
    nothing = shared.change("DELETE FROM {t} WHERE id = 2", bare)
    assert nothing.verdict is Verdict.ERRORED
    assert reason(nothing).code == "NOTHING_CHECKED"


def test_a_change_that_meets_no_row_is_rejected(shared: Gate) -> None:
    """A statement that affects no row is rejected."""
    report = shared.change("DELETE FROM {t} WHERE id = 99")
    assert report.verdict is Verdict.REJECTED
    assert failed(report) == [("change.has_effect", "0 rows added, 0 removed")]


def test_a_second_run_of_a_change_does_not_make_it_twice(gate: Gate) -> None:
    """A second try undoes the first one's commit before it runs the statement again."""
    spec = gate.spec("UPDATE {t} SET id = id + 10")
    gate.job.run(spec)
    gate.job.services.s3.delete_object(Bucket=LAKE_BUCKET, Key=spec.report_key)
    again = gate.job.run(spec)
    assert again.verdict is Verdict.PASSED
    assert [id_ for id_, _ in gate.rows(again.branch)] == [11, 12, 13]
    gate.job.publish(again)
    assert [id_ for id_, _ in gate.rows("main")] == [11, 12, 13]


def test_an_overwritten_change_is_not_run(shared: Gate) -> None:
    """A change whose text was overwritten is not executed."""
    spec = shared.spec("DELETE FROM {t} WHERE id = 1")
    other = Change(shared.table, f"DELETE FROM {shared.table}", "t")
    body = other.to_json().encode()
    shared.job.services.s3.put_object(Bucket=LAKE_BUCKET, Key=spec.landed.key, Body=body)
    report = shared.job.run(spec)
    assert reason(report).code == "BAD_CHANGE"
    assert len(shared.rows(report.branch)) == 3


def test_a_table_that_is_not_there_cannot_be_changed(job: Job, table: str) -> None:
    """A change of a table that does not exist ends errored."""
    report = Gate(job, table).change("DELETE FROM {t}")
    assert reason(report).code == "TABLE_GONE"


def test_a_change_that_repeats_a_key_of_the_table_tells_only_that_key(shared: Gate) -> None:
    """Of a key that is unique in the whole table, rows with other keys are not at fault."""
    unique = {**COLUMNS["id"], "quality": [whole_table(UNIQUE)]}
    report = shared.change("UPDATE {t} SET id = 1 WHERE id = 3", shared.contract(id=unique))
    assert [told(check) for check in report.failed] == [["id 1 twice"], ["id 1 twice"]]


def test_a_key_of_an_upsert_is_there_once(shared: Gate) -> None:
    """A key that a file may have for each value of `latestBy` must not be twice in the table."""
    upsert = {**COLUMNS, "id": {"logicalType": "integer", "primaryKey": True}}
    upsert["name"] = {**COLUMNS["name"], "required": True}
    columns = [{"name": name, **each} for name, each in upsert.items()]
    contract = contract_of(columns, (), shared.table, writeMode="upsert", latestBy="name")
    report = shared.change("UPDATE {t} SET id = 1 WHERE id = 3", contract)
    assert [(check.columns, check.counted) for check in report.failed] == [(("id",), 1)]
    assert [told(check) for check in report.failed] == [["id 1 twice"]]


def test_references_and_queries_cover_the_whole_table(shared: Gate) -> None:
    """Foreign keys and queries with the scope `table` are checked on all rows."""
    other = new_gate(shared.job).table.partition(".")[2]
    query = {"type": "sql", "query": "SELECT count(*) FROM {object} WHERE id > 2", "mustBe": 1}
    reference = {**COLUMNS["id"], "relationships": [{"to": f"{other}.id"}]}
    contract = shared.contract(whole_table(query), id=reference)
    fine = shared.change("UPDATE {t} SET name = 'n9' WHERE id = 1", contract)
    assert (fine.verdict, skipped(fine)) == (Verdict.PASSED, []), fine.reason
    bad = shared.change("UPDATE {t} SET id = id + 1", contract)
    assert sorted(check.metric for check in bad.failed) == ["missingReferences", "sql"]


def test_a_column_spelt_in_another_case_is_the_tables(shared: Gate) -> None:
    """A contract may spell a column in another case than the table.

    A check that is skipped does not keep the change from passing.
    """
    spelling = {"Id": "id", "name": "name", "DAY": "day"}
    columns = [{"name": name, **COLUMNS[own]} for name, own in spelling.items()]
    spelt = contract_of(columns, [ROW_COUNT], shared.table)
    report = shared.change("DELETE FROM {t} WHERE id = 3", spelt)
    assert (report.verdict, report.effect) == (Verdict.PASSED, Effect(3, 2, 0, 1))
    assert len(skipped(report)) == 1
