"""The job over real Spark, Nessie and S3."""

import gzip
from collections.abc import Callable
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from lakegate.audit.report import Status, Verdict
from spark_jobs.one_pass.examined import WAY
from spark_jobs.spark.step_metrics import Work, work_since
from tests.spark.conftest import GOOD, Job, changed, parquet, reason
from tests.spark.measuring import contract_of

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


@pytest.mark.parametrize("key", ["a file, with + and ümläuts.parquet", "_hidden {x}*.parquet"])
def test_exactly_the_landed_version_is_read(
    job: Job, contract: Contract, table: str, key: str
) -> None:
    """A key of any characters, replaced before the run, is read in the version that landed."""
    landed = job.services.land(f"tests/{key}", parquet(GOOD))
    job.services.land(f"tests/{key}", changed(id=[7, 8, 9]))
    report = job.run(job.spec(landed, contract(), table))
    assert sorted(row["id"] for row in job.rows(table, report.branch)) == [1, 2, 3]


# For each check a column's property, and the values that break it once.
BROKEN_ONCE: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "a.nullValues": ({"logicalType": "integer", "required": True}, [1, None, 3]),
    "b.duplicateValues": ({"logicalType": "integer", "unique": True}, [1, 2, 1]),
    **{
        f"{name}.invalidValues": (
            {"logicalType": "string", "logicalTypeOptions": {"pattern": "^n[0-9]+$"}},
            ["n1", bad, None],
        )
        for name, bad in (("c", "x2"), ("d", "n2\n"))
    },
    **{
        f"{name}.invalidValues": (
            {"logicalType": "number", "logicalTypeOptions": {"minimum": 0, "maximum": 100}},
            [bad, 1.0, None],
        )
        for name, bad in (("e", 100.5), ("f", -0.1), ("g", float("nan")))
    },
}


def test_each_broken_value_fails_its_own_check(job: Job, table: str) -> None:
    """Every broken value fails the one check that is meant for it, with a count of 1.

    The report shows the bad rows, and the branch keeps them.
    """
    names = [check.partition(".")[0] for check in BROKEN_ONCE]
    columns = dict(zip(names, BROKEN_ONCE.values(), strict=True))
    text = contract_of([{"name": n, **stated} for n, (stated, _) in columns.items()], table=table)
    report = job.ingest(parquet({n: v for n, (_, v) in columns.items()}), text, table)
    assert report.verdict is Verdict.REJECTED
    assert {c.id: c.counted for c in report.failed} == dict.fromkeys(BROKEN_ONCE, 1)
    shown = {check.id: check.samples[0] for check in report.failed if check.samples}
    assert shown["f.invalidValues"]["f"] == "-0.1"
    assert len(job.rows(table, report.branch)) == 3


def test_columns_that_do_not_fit_reject_the_file_unread(
    job: Job, contract: Contract, table: str
) -> None:
    """Columns other than the contract's reject the file, each by a check, unwritten."""
    body = parquet({
        "id": pa.array([1, 2, 3], pa.uint64()),
        "name": GOOD["name"],
        "amount": ["1", "2", "3"],
        "more": [1, 2, 3],
    })  # fmt: skip
    report = job.ingest(body, contract(), table)
    assert (report.verdict, report.audited_hash) == (Verdict.REJECTED, "")
    wrong = {f"file.columns.{name}" for name in ("id", "amount", "more", "day")}
    assert {check.id for check in report.failed} == wrong


def test_narrower_types_and_another_order_pass(job: Job, contract: Contract, table: str) -> None:
    """Narrower types, another order and another case of names are accepted."""
    body = parquet({
        "DAY": pa.nulls(3),
        "AMOUNT": pa.array([1, 2, 3], pa.int32()),
        "NAME": GOOD["name"],
        "ID": pa.array([1, 2, 3], pa.int16()),
    })  # fmt: skip
    assert job.ingest(body, contract(), table).rows_written == 3


def _damaged() -> bytes:
    body = bytearray(changed(name=["n1" * 900, "n2" * 900, "n3"]))
    body[40:60] = bytes(20)
    return bytes(body)


@pytest.mark.parametrize(
    ("body", "code"), [(b"id,name\n1,n1\n", "NOT_PARQUET"), (_damaged(), "CORRUPT_FILE")]
)
def test_a_file_that_cannot_be_read_is_an_error_at_once(
    job: Job, contract: Contract, table: str, body: bytes, code: str
) -> None:
    """A file of another format, or a damaged one, ends errored and is not on its branch."""
    report = job.ingest(body, contract(), table)
    assert (report.verdict, reason(report).code) == (Verdict.ERRORED, code)
    assert report.audited_hash == ""


CSV = "id,name,amount,day\n1,n1,0.5,2013-01-01\n2,n2,99,2013-01-02\n3,,,\n"


def test_csv_takes_its_types_from_the_contract(job: Job, contract: Contract, table: str) -> None:
    """A CSV file's cells get the contract's types; an empty cell is null.

    A file is no gzip for its name alone.
    """
    report = job.ingest(CSV.encode(), contract("csv"), table, "tests/plain.csv.gz")
    rows = sorted(job.rows(table, report.branch), key=lambda row: row["id"])
    assert rows[0] == {"id": 1, "name": "n1", "amount": 0.5, "day": date(2013, 1, 1)}
    assert rows[2] == {"id": 3, "name": None, "amount": None, "day": None}


# Unparseable rows, and the cells that the report names.
BAD_LINES = {
    "4,n4,1.0": [("the whole row", "4,n4,1.0")],
    "4,n4,1.0,2013-01-04,more": [("the whole row", "4,n4,1.0,2013-01-04,more")],
    "four,n4,1.0,2013-02-30": [("id", "four"), ("day", "2013-02-30")],
}


def test_bad_csv_rows_reject_the_file_and_are_shown(
    job: Job, contract: Contract, table: str
) -> None:
    """Unparseable rows reject the file and are not on its branch; the report names their cells.

    A file is recognized as gzip by its bytes, whatever its name.
    """
    body = gzip.compress((CSV + "".join(f"{line}\n" for line in BAD_LINES)).encode(), mtime=0)
    report = job.ingest(body, contract("csv"), table, "tests/packed.csv")
    assert (report.verdict, reason(report).code) == (Verdict.REJECTED, "BAD_ROWS")
    (check,) = report.failed
    wanted = "3 of 6 rows could not be read"
    assert (check.found, check.counted) == (wanted, 3)
    named = [cell for cells in BAD_LINES.values() for cell in cells]
    assert [(sample["column"], sample["value"]) for sample in check.samples] == named
    assert [s["place"] for s in check.samples] == ["line 5", "line 6", "line 7", "line 7"]
    assert (report.rows_read, report.rows_rejected, report.rows_written) == (6, 3, 3)
    assert (report.rows_unreadable, report.rows_nulled, report.holds_nulls) == (3, 0, False)
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
