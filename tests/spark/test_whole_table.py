"""Checks of the whole table over real Spark, Nessie and S3: counts, and the files read."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from infra.local.settings import LAKE_BUCKET
from lakegate.audit.failing_rows import told
from lakegate.audit.report import AuditReport, Verdict
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import report_key
from spark_jobs.audit.keys.key_digest import FOLDER
from tests.spark.conftest import Job, parquet, reason
from tests.spark.measuring import UNIQUE, contract_of, whole_table

pytestmark = pytest.mark.spark
KEY: dict[str, Any] = {"logicalType": "integer", "quality": [whole_table(UNIQUE)]}


@dataclass(frozen=True)
class Gate:
    """Land files for one table, publish them, and register them on fresh branches.

    Its ids are unique in the whole table, which has fewer rows than `limit` if there is one.
    """

    job: Job
    table: str
    limit: int | None = None

    def audit(self, ids: Any) -> tuple[JobSpec, AuditReport]:
        """Land a file with these ids, and run its job."""
        few = whole_table({"metric": "rowCount", "mustBeLessThan": self.limit})
        rules = [few] if self.limit else []
        columns = [{"name": "id", **KEY}, {"name": "rest", "logicalType": "string"}]
        body = parquet({"id": pa.array(ids, pa.int64()), "rest": ["x"] * len(ids)})
        number = len(self.job.services.s3.list_objects_v2(Bucket="landing").get("Contents", []))
        landed = self.job.services.land(f"{self.table}/{number}", body)
        spec = self.job.spec(landed, contract_of(columns, rules, self.table), self.table)
        return spec, self.job.run(spec)

    def failed(self, ids: list[Any]) -> list[tuple[str, str]]:
        """Return what the audit of a file with these ids finds."""
        return found(self.audit(ids)[1])

    def publish(self, ids: list[Any]) -> None:
        """Publish a file."""
        self.job.publish(self.audit(ids)[1])

    def register(self, spec: JobSpec, report: AuditReport) -> JobSpec:
        """Register an audited file on a fresh branch; return the job spec of its re-audit."""
        catalog = self.job.services.catalog
        base, fresh = catalog.head("main"), self.job.registered(report)
        return replace(
            spec,
            attempt=spec.attempt + 1,
            branch=fresh,
            base_hash=base,
            report_key=report_key(self.table, spec.ingestion, spec.attempt + 1),
            reaudit_base=spec.base_hash,
            audited_hash=catalog.head(fresh),
            earlier_report=spec.report_key,
        )

    def sql(self, text: str) -> list[Any]:
        """Run SQL of another writer on main; {t} is the table."""
        session = self.job.session("main", "publisher")
        return session.sql(text.replace("{t}", f"lake.{self.table}")).collect()

    def delete(self, id_: int) -> None:
        """Delete a row of main without rewriting its file."""
        self.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
        self.sql(f"DELETE FROM {{t}} WHERE id = {id_}")
        assert self.sql("SELECT count(*) FROM {t}.delete_files")[0][0] == 1

    def digests(self) -> dict[str, bytes]:
        """Return the key digests of the table by their keys in the lake bucket."""
        s3, prefix = self.job.services.s3, f"warehouse/{self.table.replace('.', '/')}_"
        listed = s3.list_objects_v2(Bucket=LAKE_BUCKET, Prefix=prefix)["Contents"]
        keys = [each["Key"] for each in listed if f"/{FOLDER}/" in each["Key"]]
        return {key: s3.get_object(Bucket=LAKE_BUCKET, Key=key)["Body"].read() for key in keys}

    def put_digests(self, bodies: Mapping[str, bytes]) -> None:
        """Replace key digests; an empty one is deleted."""
        for key, body in bodies.items():
            if body:
                self.job.services.s3.put_object(Bucket=LAKE_BUCKET, Key=key, Body=body)
            else:
                self.job.services.s3.delete_object(Bucket=LAKE_BUCKET, Key=key)

    def lose(self, *ids: int) -> None:
        """Delete the files on main that hold any of these ids, so that reading them fails."""
        wanted = ", ".join(map(str, ids))
        for row in self.sql(f"SELECT DISTINCT _file FROM {{t}} WHERE id IN ({wanted})"):
            bucket, _, key = row[0].removeprefix("s3://").partition("/")
            self.job.services.s3.delete_object(Bucket=bucket, Key=key)


@pytest.fixture
def gate(job: Job, table: str) -> Gate:
    return Gate(job, table)


def found(report: AuditReport) -> list[tuple[str, str]]:
    """Return each failed check and what it found, without its note."""
    return [(check.id, check.found.partition(" (")[0]) for check in report.failed]


def repeated(count: int) -> list[tuple[str, str]]:
    rows = f"{count} row{'s' if count > 1 else ''} in the whole table"
    return [("id.duplicateValuesInTable", rows)]


def test_each_row_that_repeats_a_key_counts_once(gate: Gate) -> None:
    """Rows beyond the first of a new key count, and all rows of a known one; a null is no key.

    In a table's first file only the file's own rows can repeat a key.
    """
    assert gate.failed([1, 1]) == repeated(1)
    gate.publish([1, 2])
    assert gate.failed([2, 2, 7, 7, 7, None, None, 8]) == repeated(4)


def test_rows_whose_key_is_known_are_told(gate: Gate) -> None:
    """A failed file names its rows whose key the table has, beside keys that come twice in it."""
    gate.publish([1, 2, 3])
    _, report = gate.audit([4, 2, 5, 5, 3, None])
    (check,) = report.failed
    assert told(check) == [
        "id 5 twice: rows 3, 4",
        "row 2: id 2, rest x",
        "row 5: id 3, rest x",
    ]


def test_only_keys_of_live_rows_are_known(gate: Gate) -> None:
    """A key can be used again after its row was deleted without rewriting its file.

    Duplicates that the table had before do not reject a file with other keys.
    """
    gate.publish([1, 2, 3])
    gate.sql("INSERT INTO {t} VALUES (1, 'somebody else')")
    gate.delete(2)
    assert gate.failed([2]) == []
    assert gate.failed([3]) == repeated(1)


def test_files_that_cannot_have_the_keys_are_not_read(gate: Gate) -> None:
    """Only files whose range of keys overlaps the new file's are read."""
    gate.publish([1, 2, 3])
    gate.publish([100, 200])
    gate.lose(1)
    assert gate.failed([150]) == []
    assert gate.failed([200]) == repeated(1)


def test_new_keys_between_the_tables_are_found_by_digests_alone(gate: Gate) -> None:
    """Files that may have a key by their statistics are not read if their digests exclude it.

    A file that repeats no key leaves a digest for later ones, and one that does leaves none.
    """
    gate.publish([1, 9])
    gate.publish([2, 8])
    assert len(gate.digests()) == 2
    assert gate.failed([9, 3]) == repeated(1)
    gate.lose(2)
    assert len(gate.digests()) == 2
    assert gate.failed([5, 9]) == repeated(1)
    gate.lose(1)
    assert gate.failed([5, 6]) == []
    assert len(gate.digests()) == 3


def test_digests_that_are_missing_or_wrong_are_made_again(gate: Gate) -> None:
    """The keys in a file of another writer, or with a lost or damaged digest, are found."""
    gate.publish([1, 9])
    gate.sql("INSERT INTO {t} VALUES (2, 'somebody else'), (8, null)")
    assert gate.failed([9, 8, 5]) == repeated(2)
    sound = gate.digests()
    (one, first), (two, second) = sound.items()
    for wrong in [b"", b"x"], [first[:-1], second[:20]], [second, first]:
        gate.put_digests(dict(zip((one, two), wrong, strict=True)))
        assert gate.failed([8, 7, 9]) == repeated(2)
        assert gate.digests() == sound


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
    "integer:int": (pa.array([1, -1], pa.int32()), pa.array([2, -2], pa.int32())),
    "number:float": (pa.array([-0.0, 1.5], pa.float32()), pa.array([2.5, -1.5], pa.float32())),
    "number:decimal(9,2)": (
        pa.array([Decimal("1.50"), Decimal("-1.50")], pa.decimal128(9, 2)),
        pa.array([Decimal("1.51"), Decimal(0)], pa.decimal128(9, 2)),
    ),
    "timestamp:timestamp_ntz": (
        pa.array([0, 9], pa.timestamp("us")),
        pa.array([1, 2], pa.timestamp("us")),
    ),
}


def typed(type_: str) -> dict[str, str]:
    logical, _, physical = type_.partition(":")
    return {"logicalType": logical, **({"physicalType": physical} if physical else {})}


@pytest.mark.parametrize("write", ["auto", "spark"])
def test_keys_of_any_type_are_found(job: Job, table: str, write: str) -> None:
    """Whatever the key's type, a known key is found again, and a new key passes.

    Spark and Arrow write the same keys. Keys in a column that is new in the contract are compared
    within the file only.
    """
    columns = [{"name": f"c{n}", **KEY, **typed(type_)} for n, type_ in enumerate(KEYS_OF_TYPES)]
    new = {"name": "new", **KEY, "logicalType": "string"}

    def audit(which: int, write: str = "auto", **more: list[str]) -> AuditReport:
        keys = {f"c{n}": pair[which] for n, pair in enumerate(KEYS_OF_TYPES.values())}
        text = contract_of([*columns, *([new] if more else [])], (), table, write=write)
        return job.ingest(parquet({**keys, **more}), text, table)

    job.publish(audit(0, write))
    assert audit(1, new=["a", "b"]).verdict is Verdict.PASSED
    failed = {check.columns[0]: check.counted for check in audit(0, new=["a", "a"]).failed}
    every = {column["name"]: 2 for column in columns}
    assert failed == {**every, f"c{list(KEYS_OF_TYPES).index('boolean')}": 1, "new": 1}


def test_the_tables_rows_are_counted_with_the_files(job: Job, table: str) -> None:
    """A row count of the table counts all live rows, with the file's and without deleted ones.

    It does not allow an empty file.
    """
    gate = Gate(job, table, limit=6)
    gate.publish([1, 2, 3])
    assert gate.failed([4, 5]) == []
    assert gate.failed([4, 5, 6]) == [("rowCountInTable", "6 rows in the whole table")]
    gate.delete(1)
    assert gate.failed([4, 5, 6]) == []
    assert [id_ for id_, _ in gate.failed([])] == ["file.has_rows"]


def test_a_reaudit_compares_with_what_main_gained(job: Job, table: str) -> None:
    """A key that main gained after the audit rejects the file, and so do too many rows.

    Other results are carried over. Without the report of the earlier audit it ends errored.
    """
    gate = Gate(job, table, limit=5)
    gate.publish([1])
    spec, audited = gate.audit([2, 3])
    gate.publish([3, 4])
    again = gate.register(spec, audited)
    main, key = job.services.catalog.head("main"), f"{again.report_key}.foreign"
    foreign = job.run(replace(again, reaudit_base=main, report_key=key))
    assert (foreign.verdict, reason(foreign).code) == (Verdict.ERRORED, "FOREIGN_REPORT")
    report = job.run(again)
    assert report.verdict is Verdict.REJECTED
    assert found(report) == [*repeated(1), ("rowCountInTable", "5 rows in the whole table")]
    assert (report.attempt, report.branch, report.base_hash) == (2, again.branch, again.base_hash)
    carried = [replace(check, attempt=None) for check in report.checks if check.attempt == 1]
    assert carried == [check for check in audited.checks if not check.id.endswith("InTable")]


def test_a_reaudit_reads_only_what_main_gained(gate: Gate) -> None:
    """A re-audit reads neither the landed object nor old files of main, and writes nothing.

    A second re-audit reads only what main gained since the first.
    """
    gate.publish([1, 9])
    spec, audited = gate.audit([2, 3])
    gate.publish([100, 200])
    gate.publish([0, 8])
    second = gate.register(spec, audited)
    gate.lose(1)
    gate.lose(100)
    gate.job.services.s3.delete_object(
        Bucket="landing", Key=spec.landed.key, VersionId=spec.landed.version
    )
    once = gate.job.run(second)
    assert (once.verdict, once.rows_written) == (Verdict.PASSED, 2)
    assert once.audited_hash == second.audited_hash
    assert gate.job.services.catalog.head(second.branch) == second.audited_hash
    gate.publish([10, 19])
    third = gate.register(second, once)
    gate.lose(0)
    twice = gate.job.run(third)
    assert (twice.verdict, twice.attempt) == (Verdict.PASSED, 3)
    assert {check.attempt for check in twice.checks} == {1, None}
    gate.job.publish(twice)


def test_a_reaudit_honours_deletes(gate: Gate) -> None:
    """A key that main gained and deleted again can be used."""
    gate.publish([1])
    spec, audited = gate.audit([2, 3])
    gate.publish([3, 4])
    gate.delete(3)
    assert found(gate.job.run(gate.register(spec, audited))) == []
