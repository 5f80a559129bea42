"""Batches: files of several tables are appended and audited on one branch."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from lakegate.audit.audit_tables import RESULTS
from lakegate.audit.report import Status, Verdict
from lakegate.job.batch import BatchFile
from lakegate.job.jobspec import JobSpec
from lakegate.job.landing import BATCH, report_key
from tests.spark.conftest import GOOD, Job, changed, parquet, reason
from tests.spark.measuring import UNIQUE, whole_table

pytestmark = pytest.mark.spark
Contract = Callable[..., str]
Batch = Callable[..., JobSpec]


@pytest.fixture
def batch(job: Job, table: str, contract: Contract) -> Batch:
    """Land the files a.parquet and b.parquet of two tables; return their batch's job spec."""

    def land(a: tuple[str, bytes], b: tuple[str, bytes], *rules: Mapping[str, Any]) -> JobSpec:
        services, folder = job.services, f"batches/{table}/"
        parts = []
        for key, (name, body) in {"a.parquet": a, "b.parquet": b}.items():
            version = services.put_contract(name, contract("parquet", *rules, name=name))
            landed = services.land(folder + key, body)
            names = key, landed.version, landed.etag, landed.size
            parts.append(BatchFile(*names, name, f"contracts/{name}.yaml", version))
        spec = services.spec(services.land(f"{folder}_manifest.json", b"{}"), "", BATCH)
        return replace(spec, parts=tuple(parts), contract_key="")

    return land


@pytest.fixture
def others(table: str) -> tuple[str, str]:
    """Return the names of two tables."""
    return f"{table}a", f"{table}b"


def test_files_of_two_tables_are_on_one_branch(
    job: Job, batch: Batch, table: str, others: tuple[str, str]
) -> None:
    """Each file's rows are in its table on the branch; the report has a passed part for each.

    Files that were replaced after the manifest was accepted are read in their old version.
    """
    one, other = others
    spec = batch((one, parquet(GOOD)), (other, changed(id=[7, 8, 9])))
    assert spec.report_key == report_key(BATCH, spec.ingestion, 1)
    for key in ("a.parquet", "b.parquet"):
        job.services.land(f"batches/{table}/{key}", changed(id=[4, 5, 6]))
    report = job.run(spec)
    assert (report.verdict, report.rows_written) == (Verdict.PASSED, 6)
    assert [(part.table, part.rows_written) for part in report.parts] == [(one, 3), (other, 3)]
    assert sorted(row["id"] for row in job.rows(one, spec.branch)) == [1, 2, 3]
    assert sorted(row["id"] for row in job.rows(other, spec.branch)) == [7, 8, 9]
    assert job.services.catalog.head(spec.branch) == report.audited_hash
    assert report.parts[-1].audited_hash == report.audited_hash
    assert {check.table for check in report.checks} == {one, other}
    for part in report.parts:
        assert [f.path for f in part.records if f.path.startswith(RESULTS.files(spec.lake_bucket))]
    assert job.run(spec) == report


def test_one_file_that_fails_fails_the_batch(
    job: Job, batch: Batch, others: tuple[str, str]
) -> None:
    """The report of a failed batch names the file and its table, and passes the other file."""
    one, other = others
    report = job.run(batch((one, parquet(GOOD)), (other, changed(id=[7, None, 9]))))
    assert report.verdict is Verdict.REJECTED
    assert reason(report).message.startswith(f"b.parquet for {other}: ")
    assert [check.id for check in report.failed] == ["b.parquet: id.nullValues"]
    assert [part.verdict for part in report.parts] == [Verdict.PASSED, Verdict.REJECTED]
    assert report.audited_hash


def test_a_damaged_file_errs_the_batch(job: Job, batch: Batch, others: tuple[str, str]) -> None:
    """A damaged file makes the batch errored; the other file is audited all the same."""
    one, other = others
    report = job.run(batch((one, b"PAR1 no PAR1"), (other, parquet(GOOD))))
    assert (report.verdict, report.audited_hash) == (Verdict.ERRORED, "")
    assert [part.verdict for part in report.parts] == [Verdict.ERRORED, Verdict.PASSED]


def test_a_later_file_sees_the_ones_before_it(job: Job, batch: Batch, table: str) -> None:
    """Keys that must be unique in the whole table are compared with the batch's earlier files."""
    unique = whole_table({**UNIQUE, "arguments": {"properties": ["id"]}})
    spec = batch((table, parquet(GOOD)), (table, changed(id=[3, 4, 5])), unique)
    report = job.run(spec)
    assert report.verdict is Verdict.REJECTED
    (failed,) = report.failed
    assert (failed.status, failed.id.partition(":")[0]) == (Status.FAIL, "b.parquet")
    assert [part.rows_written for part in report.parts] == [3, 3]
