"""The job over real Spark, Nessie and S3."""

import gzip
from collections.abc import Callable

import pyarrow as pa
import pytest

from lakegate.audit.report import Status, Verdict
from spark_jobs.one_pass.examined import WAY
from spark_jobs.spark.step_metrics import Work, work_since
from tests.spark.conftest import GOOD, Job, changed, parquet, reason

pytestmark = pytest.mark.spark
Contract = Callable[..., str]
FEW = {"metric": "rowCount", "mustBeGreaterThan": 5, "severity": "warning"}


def test_a_good_file_is_on_its_branch_and_passes(job: Job, contract: Contract, table: str) -> None:
    """The rows of a good file are on its branch, at the reported hash; main is unchanged.

    Arrow writes and audits it, and the report says so. A failed check of severity warning is
    reported. A run that is repeated returns the same report.
    """
    catalog = job.services.catalog
    before = catalog.head("main")
    landed = job.services.land("tests/good", parquet(GOOD))
    spec = job.spec(landed, contract("parquet", FEW), table)
    report = job.run(spec)
    assert job.run(spec) == report
    assert catalog.head("main") == before
    assert (report.verdict, report.engine["write"]) == (Verdict.PASSED, WAY)
    assert {check.tier for check in report.checks} == {"file", "arrow"}
    assert (len(report.files), report.rows_read, report.rows_written) == (1, 3, 3)
    assert [check.id for check in report.checks if check.status is Status.WARN] == ["rowCount"]
    assert job.rows(table, report.branch) == [
        dict(zip(GOOD, row, strict=True)) for row in zip(*GOOD.values(), strict=True)
    ]
    assert catalog.head(report.branch) == report.audited_hash


def test_an_interrupted_run_begins_again(job: Job, contract: Contract, table: str) -> None:
    """A try undoes the commits of an earlier one without a report: no row is doubled.

    The report names exactly the data files of this try, with their sizes.
    """
    first = job.ingest(parquet(GOOD), contract(), table)
    job.publish(first)
    landed = job.services.land("tests/cut", changed(id=[4, 5, 6]))
    spec = job.spec(landed, contract(), table)
    cut = job.run(spec)
    job.services.s3.delete_object(Bucket=spec.lake_bucket, Key=spec.report_key)
    report = job.run(spec)
    assert sorted(row["id"] for row in job.rows(table, spec.branch)) == [1, 2, 3, 4, 5, 6]
    (file,) = report.files
    assert file.path not in {other.path for other in (*first.files, *cut.files)}
    bucket, _, key = file.path.removeprefix("s3://").partition("/")
    head = job.services.s3.head_object(Bucket=bucket, Key=key)
    assert (file.rows, file.bytes) == (3, head["ContentLength"])


@pytest.mark.parametrize(
    ("key", "write"),
    [("a file, with + and ümläuts.parquet", "auto"), ("_hidden {x}*.parquet", "spark")],
)
def test_exactly_the_landed_version_is_read(
    job: Job, contract: Contract, table: str, key: str, write: str
) -> None:
    """A key of any characters, replaced before the run, is read in the version that landed."""
    landed = job.services.land(f"tests/{key}", parquet(GOOD))
    job.services.land(f"tests/{key}", changed(id=[7, 8, 9]))
    report = job.run(job.spec(landed, contract(write=write), table))
    assert sorted(row["id"] for row in job.rows(table, report.branch)) == [1, 2, 3]


CSV = b"id,name,amount,day\n1,n1,0.5,2013-01-01\n2,n2,99,2013-01-02\n3,,,\n"


@pytest.mark.parametrize("write", ["auto", "spark"])
@pytest.mark.parametrize(
    ("name", "body"),
    [("plain.csv.gz", CSV), ("packed.csv", gzip.compress(CSV))],
    ids=["plain", "packed"],
)
def test_a_file_is_gzip_by_its_bytes_alone(
    job: Job, contract: Contract, table: str, name: str, body: bytes, write: str
) -> None:
    """Neither way to read a file believes its name."""
    report = job.ingest(body, contract("csv", write=write), table, f"tests/{name}")
    assert {row["id"] for row in job.rows(table, report.branch)} == {1, 2, 3}


def test_a_file_without_rows_is_rejected(job: Job, contract: Contract, table: str) -> None:
    """A file with columns but without rows is not published, unless its contract counts rows."""
    empty = pa.table(dict(GOOD)).slice(0, 0)
    body = parquet(dict(zip(GOOD, empty.columns, strict=True)))
    assert reason(job.ingest(body, contract(), table)).code == "NO_ROWS"


def test_jobs_are_counted_that_spark_remembers_no_more(job: Job) -> None:
    """Jobs that Spark no longer keeps in memory are counted once."""
    spark = job.warm_spark
    before = work_since(spark, Work())
    for _ in range(30):
        spark.range(1).collect()
    assert work_since(spark, before).jobs - before.jobs == 30
