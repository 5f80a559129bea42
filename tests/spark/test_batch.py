"""Batches: files of several tables are appended and audited on one branch."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from lakegate.audit_tables import RESULTS
from lakegate.batch import BatchFile
from lakegate.jobspec import JobSpec
from lakegate.landing import BATCH, report_key
from lakegate.report import Status, Verdict
from tests.spark.conftest import Job
from tests.spark.test_job import GOOD, changed, parquet

pytestmark = pytest.mark.spark
Contract = Callable[..., str]


@pytest.fixture
def batch(job_runner: Job, table: str, contract: Contract) -> Callable[..., JobSpec]:
    """Land files, each with its table, and return the job spec of their batch."""

    def land(files: Mapping[str, tuple[str, bytes]], quality: str = "") -> JobSpec:
        services, folder = job_runner.services, f"batches/{table}/"
        parts = []
        for key, (name, body) in files.items():
            version = services.put_contract(name, contract(quality=quality).replace(table, name))
            landed = services.land(folder + key, body)
            names = key, landed.version, landed.etag, landed.size
            parts.append(BatchFile(*names, name, f"contracts/{name}.yaml", version))
        manifest = services.land(f"{folder}_manifest.json", b"{}")
        spec = services.spec(manifest, "", BATCH)
        return replace(spec, parts=tuple(parts), contract_key="")

    return land


def others(table: str) -> tuple[str, str]:
    """Return the names of two tables."""
    return f"{table}a", f"{table}b"


def test_files_of_two_tables_are_on_one_branch(
    job_runner: Job, batch: Callable[..., JobSpec], table: str
) -> None:
    """Each file's rows are in its table on the branch; the report has a passed part for each."""
    one, other = others(table)
    spec = batch({"a.parquet": (one, parquet(GOOD)), "b.parquet": (other, changed(id=[7, 8, 9]))})
    code, report = job_runner.run(spec)
    assert (code, report.verdict, report.rows_written) == (0, Verdict.PASSED, 6)
    assert [(part.table, part.rows_written) for part in report.parts] == [(one, 3), (other, 3)]
    assert sorted(row["id"] for row in job_runner.rows(one, spec.branch)) == [1, 2, 3]
    assert sorted(row["id"] for row in job_runner.rows(other, spec.branch)) == [7, 8, 9]
    assert job_runner.services.catalog.head(spec.branch) == report.audited_hash
    assert report.parts[-1].audited_hash == report.audited_hash
    assert {check.table for check in report.checks} == {one, other}
    for part in report.parts:
        assert [f.path for f in part.records if f.path.startswith(RESULTS.files(spec.lake_bucket))]
    assert job_runner.run(spec) == (code, report)


def test_one_file_that_fails_fails_the_batch(
    job_runner: Job, batch: Callable[..., JobSpec], table: str
) -> None:
    """The report of a failed batch names the file and its table, and passes the other file."""
    one, other = others(table)
    spec = batch(
        {"a.parquet": (one, parquet(GOOD)), "b.parquet": (other, changed(id=[7, None, 9]))}
    )
    code, report = job_runner.run(spec)
    assert (code, report.verdict) == (3, Verdict.REJECTED)
    assert report.reason is not None
    assert report.reason.message.startswith(f"b.parquet for {other}: ")
    assert [check.id for check in report.failed] == ["b.parquet: id.nullValues"]
    assert [part.verdict for part in report.parts] == [Verdict.PASSED, Verdict.REJECTED]
    assert report.audited_hash


def test_a_damaged_file_errs_the_batch(
    job_runner: Job, batch: Callable[..., JobSpec], table: str
) -> None:
    """A damaged file makes the batch errored; the other file is audited all the same."""
    one, other = others(table)
    spec = batch({"a.parquet": (one, b"PAR1 no PAR1"), "b.parquet": (other, parquet(GOOD))})
    code, report = job_runner.run(spec)
    assert (code, report.verdict, report.audited_hash) == (4, Verdict.ERRORED, "")
    assert [part.verdict for part in report.parts] == [Verdict.ERRORED, Verdict.PASSED]


def test_a_later_file_sees_the_ones_before_it(
    job_runner: Job, batch: Callable[..., JobSpec], table: str
) -> None:
    """Keys that must be unique in the whole table are compared with the batch's earlier files."""
    quality = """\
    quality:
      - metric: duplicateValues
        arguments: {properties: [id]}
        mustBe: 0
        customProperties: [{property: scope, value: table}]
"""
    spec = batch(
        {"a.parquet": (table, parquet(GOOD)), "b.parquet": (table, changed(id=[3, 4, 5]))},
        quality,
    )
    code, report = job_runner.run(spec)
    assert code == 3
    (failed,) = report.failed
    assert (failed.status, failed.id.partition(":")[0]) == (Status.FAIL, "b.parquet")
    assert [part.rows_written for part in report.parts] == [3, 3]


def test_exactly_the_pinned_versions_are_read(
    job_runner: Job, batch: Callable[..., JobSpec], table: str
) -> None:
    """Files that were replaced after the manifest was accepted are read in their old version."""
    one, other = others(table)
    files: dict[str, tuple[str, Any]] = {
        "a.parquet": (one, parquet(GOOD)),
        "b.parquet": (other, parquet(GOOD)),
    }
    spec = batch(files)
    for key in files:
        job_runner.services.land(f"batches/{table}/{key}", changed(id=[7, 8, 9]))
    code, report = job_runner.run(spec)
    assert code == 0
    for name in (one, other):
        assert sorted(row["id"] for row in job_runner.rows(name, report.branch)) == [1, 2, 3]
    assert spec.report_key == report_key(BATCH, spec.ingestion, 1)
