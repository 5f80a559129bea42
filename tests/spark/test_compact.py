"""A compaction has the same rows in fewer data files, over real Spark, Nessie and S3."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from pyiceberg.transforms import IdentityTransform

from infra.local.settings import LAKE_BUCKET
from lakegate import upkeep
from lakegate.errors import Transient
from lakegate.jobspec import JobSpec
from lakegate.upkeep import FEWEST, Begun, Compaction
from spark_jobs import main
from spark_jobs.compact import compact, fingerprint
from spark_jobs.spark.session import open_session
from spark_jobs.storage import Storage
from tests.fakes.clock import FakeClock
from tests.services import fresh_session
from tests.spark.conftest import Job, changed
from tests.spark.measuring import NO_RUN

pytestmark = pytest.mark.spark
Contract = Callable[..., str]
SECRET = "job-token"


def begun(job: Job, table: str) -> tuple[Begun, JobSpec]:
    """Return a compaction of a table, and its job's spec, after creating its branch."""
    found = upkeep.begin(table, datetime.fromisoformat(FakeClock().now()), table[-8:])
    base = job.services.catalog.create_branch(found.branch)
    spec = replace(
        NO_RUN,
        ingestion=found.id,
        table=table,
        branch=found.branch,
        base_hash=base,
        lake_bucket=LAKE_BUCKET,
        report_key=found.report_key,
        nessie_uri=job.services.nessie_uri,
        token_secret=SECRET,
        compact=True,
    )
    return found, spec


def run(job: Job, table: str) -> Compaction:
    """Run a compaction as EMR Serverless would; return its report."""
    found, spec = begun(job, table)
    fresh_session(job.warm_spark)
    assert main.main(spec.to_argument()) == 0
    body = job.services.s3.get_object(Bucket=LAKE_BUCKET, Key=found.report_key)["Body"].read()
    return Compaction.from_json(body, found.report_key)


def files(job: Job, table: str, reference: str) -> int:
    return len(list(job.services.at(reference).load_table(table).scan().plan_files()))


def filled(job: Job, table: str, text: str, count: int = FEWEST) -> list[dict[str, Any]]:
    """Publish so many files; return the table's rows in order."""
    for n in range(count):
        job.publish(job.ingest(changed(id=[3 * n + i for i in range(3)]), text, table))
    return ordered(job.rows(table, "main"))


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: int(row["id"]))


def test_small_files_become_one_with_the_same_rows(
    job: Job, table: str, contract: Contract
) -> None:
    """The branch has one data file with exactly main's rows, and main is as before."""
    rows = filled(job, table, contract())
    report = run(job, table)
    assert report.has_effect
    assert report.same_rows
    assert report.before.rows == len(rows)
    assert (files(job, table, "main"), files(job, table, report.branch)) == (FEWEST, 1)
    assert ordered(job.rows(table, report.branch)) == rows


def test_few_files_are_left_alone(job: Job, table: str, contract: Contract) -> None:
    """Below the least number of small files nothing is rewritten, and no commit is made."""
    filled(job, table, contract(), count=2)
    report = run(job, table)
    assert not report.has_effect
    assert report.same_rows


def test_deleted_rows_stay_deleted(job: Job, table: str, contract: Contract) -> None:
    """Rows that delete files hide are in no new data file."""
    filled(job, table, contract())
    session = job.session("main", "publisher")
    session.sql(
        f"ALTER TABLE lake.{table} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
    )
    session.sql(f"DELETE FROM lake.{table} WHERE id % 3 = 1")
    report = run(job, table)
    assert report.has_effect
    assert report.same_rows
    assert report.after.rows == 2 * FEWEST
    assert ordered(job.rows(table, report.branch)) == ordered(job.rows(table, "main"))


def test_a_table_with_an_order_is_sorted(job: Job, table: str, contract: Contract) -> None:
    """Rows lie in the order that the table declares."""
    text = contract()
    filled(job, table, text)
    with job.services.at("main").load_table(table).update_sort_order() as order:
        order.desc("id", IdentityTransform())
    report = run(job, table)
    assert report.has_effect
    assert report.same_rows
    ids = [row["id"] for row in job.rows(table, report.branch)]
    assert ids == sorted(ids, reverse=True)


def test_a_commit_of_another_writer_is_noticed(job: Job, table: str, contract: Contract) -> None:
    """A branch with another commit than the compaction's own is never reported."""
    filled(job, table, contract())
    found, spec = begun(job, table)
    storage = Storage.connect(spec)

    def meddled(spec: JobSpec, token: str) -> Any:
        spark = open_session(spec, token)
        session = job.session(found.branch, "publisher")
        session.sql(f"DELETE FROM lake.{table} WHERE id = 1")
        return spark

    fresh_session(job.warm_spark)
    with pytest.raises(Transient):
        compact(spec, storage, storage.nessie_token(), meddled)
    assert not storage.stored(found.report_key)


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param({"a": "1", "b": "2"}, id="another value"),
        pytest.param({"a": "NULL", "b": "1"}, id="a null in another column"),
        pytest.param({"a": "1", "b": "NULL", "c": "array(NULL, 1)"}, id="a null in an array"),
        pytest.param({"a": "1", "b": "NULL", "c": "map('k', 2)"}, id="a value in a map"),
    ],
)
def test_other_rows_have_another_fingerprint(job: Job, columns: Mapping[str, str]) -> None:
    """A row that differs in one cell changes the sum; the order of rows does not."""
    spark = job.warm_spark
    usual = {"a": "1", "b": "NULL", "c": "array(1, NULL)"}
    if "map" in columns.get("c", ""):
        usual["c"] = "map('k', 1)"

    def rows(*given: Mapping[str, str]) -> Any:
        one = ", ".join
        every = [one(f"{value} AS {name}" for name, value in each.items()) for each in given]
        return spark.sql(" UNION ALL ".join(f"SELECT {each}" for each in every))

    other = {**usual, **columns}
    assert fingerprint(rows(usual, usual)) != fingerprint(rows(usual, other))
    assert fingerprint(rows(usual, other)) == fingerprint(rows(other, usual))
