"""Checks of the whole table over real Spark, Nessie and S3: counts, and the files read."""

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from functions.adapters.iceberg import Tables
from functions.model.ingestion import Intent
from lakegate.jobspec import JobSpec
from lakegate.landing import report_key
from lakegate.report import AuditReport, Verdict
from spark_jobs.spark.session import session_settings
from tests.services import fresh_session
from tests.spark.conftest import Job
from tests.spark.test_job import parquet

pytestmark = pytest.mark.spark

TYPES = ["integer", "string", "date", "timestamp", "number"]
WHOLE_TABLE = "customProperties: [{property: scope, value: table}]"


@dataclass(frozen=True)
class Gate:
    """Land files for one table, publish them, and register them on fresh branches."""

    job: Job
    table: str
    contract: str

    def audit(self, ids: list[Any], *, rest: str = "x") -> tuple[JobSpec, AuditReport]:
        """Land a file with these ids, and run its job."""
        body = parquet({"id": ids, "rest": [rest] * len(ids)})
        number = len(self.job.services.s3.list_objects_v2(Bucket="landing").get("Contents", []))
        landed = self.job.services.land(f"{self.table}/{number}", body)
        spec = self.job.spec(landed, self.contract, self.table)
        return spec, self.job.run(spec)[1]

    def publish(self, ids: list[Any]) -> str:
        """Publish a file; return the hash of main after it."""
        _, report = self.audit(ids)
        assert report.verdict is Verdict.PASSED, report.reason
        return self.merge(report)

    def merge(self, report: AuditReport) -> str:
        catalog = self.job.services.catalog
        return catalog.merge(
            report.branch, report.audited_hash, report.base_hash, "Publish", {"k": "v"}
        )

    def register(self, spec: JobSpec, report: AuditReport) -> JobSpec:
        """Register an audited file on a fresh branch; return the job spec of its re-audit."""
        services = self.job.services
        fresh = f"publish/{self.table}/{spec.ingestion[:12]}-{spec.attempt}"
        base = services.catalog.create_branch(fresh)
        tables = Tables(services.nessie_uri, services.tokens["publisher"], services.s3)
        audited = Intent(report.branch, report.audited_hash)
        assert tables.append_again(self.table, [audited], fresh) == {}
        return replace(
            spec,
            attempt=spec.attempt + 1,
            branch=fresh,
            base_hash=base,
            report_key=report_key(self.table, spec.ingestion, spec.attempt + 1),
            reaudit_base=spec.base_hash,
            audited_hash=services.catalog.head(fresh),
            earlier_report=spec.report_key,
        )

    def sql(self, text: str) -> list[Any]:
        """Run SQL of another writer on main; {t} is the table."""
        session = fresh_session(self.job.warm_spark)
        services = self.job.services
        writer = replace(_NO_RUN, branch="main", nessie_uri=services.nessie_uri)
        for name, value in session_settings(writer, services.tokens["publisher"]).items():
            session.conf.set(name, value)
        return session.sql(text.replace("{t}", f"lake.{self.table}")).collect()

    def lose(self, *ids: int) -> None:
        """Delete the files on main that hold any of these ids, so that reading them fails."""
        wanted = ", ".join(map(str, ids))
        for row in self.sql(f"SELECT DISTINCT _file FROM {{t}} WHERE id IN ({wanted})"):
            bucket, _, key = row[0].removeprefix("s3://").partition("/")
            self.job.services.s3.delete_object(Bucket=bucket, Key=key)


_NO_RUN = JobSpec("", 1, None, "", "", "", "", "", "", "", "", "")  # type: ignore[arg-type]


def contract_of(table: str, key_type: str = "integer", rows: str = "") -> str:
    rule = f"{{metric: duplicateValues, mustBe: 0, {WHOLE_TABLE}}}"
    quality = f"    quality: [{{metric: rowCount, {rows}, {WHOLE_TABLE}}}]\n" if rows else ""
    unique = "" if rows else f", quality: [{rule}]"
    return f"""
kind: DataContract
apiVersion: v3.1.0
id: {table}
version: 1.0.0
schema:
  - name: {table}
{quality}    properties:
      - {{name: id, logicalType: {key_type}{unique}}}
      - {{name: rest, logicalType: string}}
"""


@pytest.fixture
def gate(job_runner: Job, table: str) -> Gate:
    """Return a table whose ids are unique in the whole table."""
    return Gate(job_runner, table, contract_of(table))


def found(report: AuditReport) -> list[tuple[str, str]]:
    """Return each failed check and what it found, without its note."""
    return [(check.id, check.found.partition(" (")[0]) for check in report.failed]


def test_a_key_that_the_table_has_rejects_the_file(gate: Gate) -> None:
    """A row whose key main already has is rejected."""
    gate.publish([1, 2, 3])
    _, report = gate.audit([3, 4, 5])
    assert report.verdict is Verdict.REJECTED
    assert found(report) == [("id.duplicateValuesInTable", "1 row in the whole table")]


def test_each_row_that_repeats_a_key_counts_once(gate: Gate) -> None:
    """Rows beyond the first of a new key count, and all rows of a known one; a null is no key."""
    gate.publish([1, 2])
    _, report = gate.audit([2, 2, 7, 7, 7, None, None, 8])
    assert found(report) == [("id.duplicateValuesInTable", "4 rows in the whole table")]


def test_a_new_table_has_nothing_before(gate: Gate) -> None:
    """In a table's first file only the file's own rows can repeat a key."""
    assert gate.audit([1, 2])[1].verdict is Verdict.PASSED
    assert gate.audit([1, 1])[1].verdict is Verdict.REJECTED


def test_bad_rows_that_the_table_held_reject_no_good_file(gate: Gate) -> None:
    """Duplicates that the table had before do not reject a file with other keys."""
    gate.publish([1, 2])
    gate.sql("INSERT INTO {t} VALUES (1, 'somebody else')")
    assert gate.audit([3])[1].verdict is Verdict.PASSED


def test_a_deleted_row_is_not_there(gate: Gate) -> None:
    """A key can be used again after its row was deleted without rewriting its file."""
    gate.publish([1, 2, 3])
    delete_row(gate, 2)
    assert gate.audit([2])[1].verdict is Verdict.PASSED
    assert gate.audit([3])[1].verdict is Verdict.REJECTED


def delete_row(gate: Gate, id_: int) -> None:
    gate.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    gate.sql(f"DELETE FROM {{t}} WHERE id = {id_}")
    assert gate.sql("SELECT count(*) FROM {t}.delete_files")[0][0] == 1


def test_files_that_cannot_have_the_keys_are_not_read(gate: Gate) -> None:
    """Only files whose range of keys overlaps the new file's are read."""
    gate.publish([1, 2, 3])
    gate.publish([100, 200])
    gate.lose(1)
    assert gate.audit([150])[1].verdict is Verdict.PASSED
    assert gate.audit([200])[1].verdict is Verdict.REJECTED


# Two keys of each type that the table has, and two new ones. A null is no key.
KEYS_OF_TYPES: dict[str, tuple[Any, Any]] = {
    "string": (["it's \\ a", "ü" * 300], ["z\n", "\t"]),
    "date": (pa.array([0, 9], pa.date32()), pa.array([1, 2], pa.date32())),
    "timestamp": (
        pa.array([0, 9], pa.timestamp("us", "UTC")),
        pa.array([1, 2], pa.timestamp("us", "UTC")),
    ),
    "number": ([0.5, float("nan")], [float("inf"), -0.5]),
    "boolean": ([True, None], [False, None]),
}


def test_keys_of_any_type_are_found(job_runner: Job, table: str) -> None:
    """Whatever the key's type, a known key is found again, and a new key passes."""
    rule = f"{{metric: duplicateValues, mustBe: 0, {WHOLE_TABLE}}}"
    columns = (
        f"- {{name: a_{type_}, logicalType: {type_}, quality: [{rule}]}}\n      "
        for type_ in KEYS_OF_TYPES
    )
    text = contract_of(table).replace("- {name: rest", "".join(columns) + "- {name: rest")
    gate = Gate(job_runner, table, text)

    def audit(ids: list[int], which: int) -> AuditReport:
        keys = {f"a_{type_}": pair[which] for type_, pair in KEYS_OF_TYPES.items()}
        body = parquet({"id": ids, **keys, "rest": ["x", "x"]})
        return job_runner.ingest(body, text, table, f"{table}/{ids[0]}")[1]

    gate.merge(audit([1, 2], 0))
    assert audit([3, 4], 1).verdict is Verdict.PASSED
    failed = {check.columns[0]: check.counted for check in audit([5, 6], 0).failed}
    assert failed == {f"a_{type_}": 2 - (type_ == "boolean") for type_ in KEYS_OF_TYPES}


def test_no_older_row_has_a_key_of_a_new_column(job_runner: Job, table: str) -> None:
    """Keys in a column that is new in the contract are compared within the file only."""
    gate = Gate(job_runner, table, contract_of(table))
    gate.publish([1])
    rule = f"{{metric: duplicateValues, mustBe: 0, {WHOLE_TABLE}}}"
    more = f"- {{name: more, logicalType: string, quality: [{rule}]}}"
    text = contract_of(table).replace("- {name: rest", f"{more}\n      - {{name: rest")
    verdicts = []
    for keys in (["a", "b"], ["a", "a"]):
        body = parquet({"id": [2, 3], "rest": ["x", "x"], "more": keys})
        verdicts.append(job_runner.ingest(body, text, table, f"{table}/{keys[1]}")[1].verdict)
    assert verdicts == [Verdict.PASSED, Verdict.REJECTED]


def test_the_tables_rows_are_counted_with_the_files(job_runner: Job, table: str) -> None:
    """A row count of the table counts all live rows, with the file's and without deleted ones."""
    gate = Gate(job_runner, table, contract_of(table, rows="mustBeLessThan: 6"))
    gate.publish([1, 2, 3])
    assert gate.audit([4, 5])[1].verdict is Verdict.PASSED
    assert found(gate.audit([4, 5, 6])[1]) == [("rowCountInTable", "6 rows in the whole table")]
    delete_row(gate, 1)
    assert gate.audit([4, 5, 6])[1].verdict is Verdict.PASSED


def test_a_file_without_rows_is_rejected_though_the_table_has_some(
    job_runner: Job, table: str
) -> None:
    """A row count of the whole table does not allow an empty file."""
    gate = Gate(job_runner, table, contract_of(table, rows="mustBeGreaterThan: 0"))
    gate.publish([1])
    _, report = gate.audit(pa.array([], pa.int64()))
    assert [check.id for check in report.failed] == ["file.has_rows"]


def test_a_reaudit_compares_with_what_main_gained(gate: Gate) -> None:
    """A key that main gained after the audit rejects the file; other results are carried over."""
    gate.publish([1])
    spec, audited = gate.audit([2, 3])
    gate.publish([3, 4])
    again = gate.register(spec, audited)
    code, report = gate.job.run(again)
    assert (code, report.verdict) == (3, Verdict.REJECTED)
    assert found(report) == [("id.duplicateValuesInTable", "1 row in the whole table")]
    assert (report.attempt, report.branch, report.base_hash) == (2, again.branch, again.base_hash)
    carried = [check for check in report.checks if check.attempt == 1]
    assert [replace(check, attempt=None) for check in carried] == list(audited.checks[:-1])


def test_a_reaudit_reads_only_what_main_gained(gate: Gate) -> None:
    """A re-audit reads neither the landed object nor old files of main, and writes nothing."""
    gate.publish([1, 9])
    spec, audited = gate.audit([2, 3])
    gate.publish([100, 200])
    gate.publish([0, 10])
    again = gate.register(spec, audited)
    gate.lose(1)
    gate.lose(100)
    gate.job.services.s3.delete_object(
        Bucket="landing", Key=spec.landed.key, VersionId=spec.landed.version
    )
    code, report = gate.job.run(again)
    assert (code, report.verdict) == (0, Verdict.PASSED)
    assert (report.rows_written, report.audited_hash) == (2, again.audited_hash)
    assert gate.job.services.catalog.head(again.branch) == again.audited_hash
    assert gate.merge(report)


def test_a_reaudit_honours_deletes(gate: Gate) -> None:
    """A key that main gained and deleted again can be used."""
    gate.publish([1])
    spec, audited = gate.audit([2, 3])
    gate.publish([3, 4])
    delete_row(gate, 3)
    assert gate.job.run(gate.register(spec, audited))[1].verdict is Verdict.PASSED


def test_a_reaudit_counts_rows_again(job_runner: Job, table: str) -> None:
    """A re-audit rejects the file if the table grew too large in the meantime."""
    gate = Gate(job_runner, table, contract_of(table, rows="mustBeLessThan: 6"))
    gate.publish([1, 2])
    spec, audited = gate.audit([3, 4])
    gate.publish([5, 6])
    _, report = gate.job.run(gate.register(spec, audited))
    assert found(report) == [("rowCountInTable", "6 rows in the whole table")]


def test_a_second_reaudit_reads_only_newer_files(gate: Gate) -> None:
    """A second re-audit reads only what main gained since the first."""
    gate.publish([1])
    spec, audited = gate.audit([2, 3])
    gate.publish([0, 9])
    second = gate.register(spec, audited)
    _, once = gate.job.run(second)
    gate.publish([10, 19])
    third = gate.register(second, once)
    gate.lose(9)
    _, twice = gate.job.run(third)
    assert (twice.verdict, twice.attempt) == (Verdict.PASSED, 3)
    assert {check.attempt for check in twice.checks} == {1, None}


def test_the_report_of_another_audit_is_refused(gate: Gate) -> None:
    """A re-audit without the report of the earlier audit ends errored."""
    gate.publish([1])
    spec, audited = gate.audit([2])
    gate.publish([3])
    again = replace(
        gate.register(spec, audited), reaudit_base=gate.job.services.catalog.head("main")
    )
    code, report = gate.job.run(again)
    assert (code, report.verdict) == (4, Verdict.ERRORED)
    assert report.reason is not None
    assert report.reason.code == "FOREIGN_REPORT"
