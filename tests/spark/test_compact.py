"""A compaction has the same rows in fewer data files, over real Spark, Nessie and S3."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pyiceberg.transforms import IdentityTransform

from functions.model.notes.compactions import begin
from infra.local.settings import LAKE_BUCKET
from lakegate.errors import Permanent
from lakegate.job.jobspec import JobSpec
from lakegate.job.upkeep import FEWEST, Comparison
from spark_jobs import main
from spark_jobs.changes.compact import fingerprint
from tests.fakes.clock import FakeClock
from tests.services import fresh_session
from tests.spark.conftest import Job, changed, new_table
from tests.spark.measuring import NO_RUN, contract_of

pytestmark = pytest.mark.spark
SECRET = "job-token"


def begun(job: Job, table: str) -> JobSpec:
    """Return the input of the run that rewrites a table, after creating its branch."""
    found = begin(table, FakeClock().now(), uuid.uuid4().hex)
    return replace(
        NO_RUN,
        ingestion=found.id,
        table=table,
        branch=found.branch,
        base_hash=job.services.catalog.create_branch(found.branch),
        lake_bucket=LAKE_BUCKET,
        report_key=found.report_key,
        nessie_uri=job.services.nessie_uri,
        token_secret=SECRET,
        compact=True,
    )


def run(job: Job, spec: JobSpec) -> None:
    """Run a job as EMR Serverless would."""
    fresh_session(job.warm_spark)
    assert main.main(spec.to_argument()) == 0


def compared(job: Job, spec: JobSpec) -> Comparison:
    """Run the job that compares the branch's head with its base; return its report."""
    run(job, replace(spec, attempt=2, audited_hash=job.services.catalog.head(spec.branch)))
    body = job.services.s3.get_object(Bucket=LAKE_BUCKET, Key=spec.report_key)["Body"].read()
    return Comparison.from_json(body, spec.report_key)


def compacted(job: Job, table: str) -> Comparison:
    """Run both jobs of a compaction; return the report."""
    spec = begun(job, table)
    run(job, spec)
    return compared(job, spec)


def files(job: Job, table: str, reference: str) -> int:
    return len(list(job.services.at(reference).load_table(table).scan().plan_files()))


def filled(job: Job, table: str, count: int = FEWEST) -> str:
    """Publish so many files; return the table."""
    types = {"id": "integer", "name": "string", "amount": "number", "day": "date"}
    text = contract_of([{"name": n, "logicalType": t} for n, t in types.items()], (), table)
    for n in range(count):
        job.publish(job.ingest(changed(id=[3 * n + i for i in range(3)]), text, table))
    return table


@pytest.fixture(scope="module")
def many(job: Job) -> str:
    """Return a table with enough small files, which no test changes on main."""
    return filled(job, new_table())


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: int(row["id"]))


def test_small_files_become_one_with_the_same_rows(job: Job, many: str) -> None:
    """The branch has one data file with exactly main's rows, and main is as before."""
    rows = ordered(job.rows(many, "main"))
    report = compacted(job, many)
    assert report.same_rows
    assert report.before.rows == len(rows)
    assert (files(job, many, "main"), files(job, many, report.branch)) == (FEWEST, 1)
    assert ordered(job.rows(many, report.branch)) == rows


def test_a_second_try_of_the_run_writes_nothing(job: Job, many: str) -> None:
    """If EMR Serverless repeats the run after its commit, the branch stays as it is."""
    spec = begun(job, many)
    run(job, spec)
    head = job.services.catalog.head(spec.branch)
    run(job, spec)
    assert job.services.catalog.head(spec.branch) == head


def test_few_files_are_left_alone(job: Job, table: str) -> None:
    """Below the least number of small files nothing is rewritten, and no commit is made."""
    spec = begun(job, filled(job, table, count=2))
    run(job, spec)
    assert job.services.catalog.head(spec.branch) == spec.base_hash


def test_a_table_with_an_order_is_sorted(job: Job, table: str) -> None:
    """Rows lie in the order that the table declares."""
    with job.services.at("main").load_table(filled(job, table)).update_sort_order() as order:
        order.desc("id", IdentityTransform())
    report = compacted(job, table)
    assert report.same_rows
    ids = [row["id"] for row in job.rows(table, report.branch)]
    assert ids == sorted(ids, reverse=True)


def test_other_rows_of_another_writer_are_noticed(job: Job, many: str) -> None:
    """If somebody with the job's token replaces rows by as many others, the fingerprints differ."""
    spec = begun(job, many)
    run(job, spec)
    session = job.session(spec.branch, "publisher")
    session.sql(f"UPDATE lake.{many} SET id = id + 1000")
    report = compared(job, spec)
    assert report.before.rows == report.after.rows
    assert not report.same_rows


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("RENAME COLUMN id TO id2", "TABLE_CHANGED"),
        ("SET TBLPROPERTIES ('schema.name-mapping.default' = '[]')", "TABLE_CHANGED"),
        ("SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')", "ROWS_DELETED"),
    ],
)
def test_a_table_that_is_read_otherwise_is_not_compared(
    job: Job, table: str, statement: str, code: str
) -> None:
    """Data files with the same rows are no proof if the table's branch reads them otherwise."""
    filled(job, table, count=2)
    deletes = code == "ROWS_DELETED"
    if deletes:
        job.session("main", "publisher").sql(f"ALTER TABLE lake.{table} {statement}")
    spec = begun(job, table)
    session = job.session(spec.branch, "publisher")
    session.sql(
        f"DELETE FROM lake.{table} WHERE id = 1"
        if deletes
        else f"ALTER TABLE lake.{table} {statement}"
    )
    fresh_session(job.warm_spark)
    told = replace(spec, audited_hash=job.services.catalog.head(spec.branch))
    with pytest.raises(Permanent) as error:
        main.main(told.to_argument())
    assert error.value.code == code


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param({"a": "1", "b": "2"}, id="another value"),
        pytest.param({"a": "NULL", "b": "1"}, id="a null in another column"),
        pytest.param({"a": "1", "b": "NULL", "c": "array(NULL, 1)"}, id="a null in an array"),
        pytest.param({"a": "1", "b": "NULL", "c": "map('k', 2)"}, id="a value in a map"),
        pytest.param(
            {"a": "1", "b": "NULL", "c": "array(TIMESTAMP '2026-11-23 00:00:00.000001')"},
            id="a microsecond in an array",
        ),
    ],
)
def test_other_rows_have_another_fingerprint(job: Job, columns: Mapping[str, str]) -> None:
    """A row that differs in one cell changes the sum; the order of rows does not."""
    spark = job.warm_spark
    usual = {"a": "1", "b": "NULL", "c": "array(1, NULL)"}
    if "map" in columns.get("c", ""):
        usual["c"] = "map('k', 1)"
    if "TIMESTAMP" in columns.get("c", ""):
        usual["c"] = "array(TIMESTAMP '2026-11-23 00:00:00')"

    def rows(*given: Mapping[str, str]) -> Any:
        one = ", ".join
        every = [one(f"{value} AS {name}" for name, value in each.items()) for each in given]
        return spark.sql(" UNION ALL ".join(f"SELECT {each}" for each in every))

    other = {**usual, **columns}
    assert fingerprint(rows(usual, usual), "k") != fingerprint(rows(usual, other), "k")
    assert fingerprint(rows(usual, other), "k") == fingerprint(rows(other, usual), "k")


def test_nobody_knows_a_rows_hash_beforehand(job: Job) -> None:
    """Another key gives another sum, so rows whose sums are equal cannot be made up."""
    rows = job.warm_spark.sql("SELECT 1 AS a")
    assert fingerprint(rows, "k").hashes != fingerprint(rows, "l").hashes
