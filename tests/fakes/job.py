"""The job, scripted: what a run does to its branch and says in its report, without Spark."""

from collections.abc import Callable
from dataclasses import replace

from functions.catalog import UnknownBranch
from functions.job_run import RunState
from lakegate.jobspec import JobSpec
from lakegate.report import AuditReport, CheckResult, DataFile, Reason, Status, Verdict
from tests.fakes.catalog import ROWS_A_FILE, FakeCatalog, FakeTable
from tests.fakes.jobs import FakeJobs
from tests.fakes.storage import FakeLake

ROWS = ROWS_A_FILE
PASSED = CheckResult("rows", "rowCount", (), "error", Status.PASS, "at least 1 row", "3 rows")
FAILED = CheckResult(
    id="id.required",
    metric="nullValues",
    columns=("id",),
    severity="error",
    status=Status.FAIL,
    expected="0 rows",
    found="1 row",
    samples=({"id": None},),
)
Script = Callable[[AuditReport], AuditReport | None]


def passed(report: AuditReport) -> AuditReport:
    """The run that finds nothing wrong."""
    return report


def rejected(report: AuditReport) -> AuditReport:
    """The run whose audit fails."""
    reason = Reason("CHECKS_FAILED", "1 of 2 checks failed: id.required")
    return replace(report, verdict=Verdict.REJECTED, reason=reason, checks=(PASSED, FAILED))


def errored(report: AuditReport) -> AuditReport:
    """The run that cannot read its file."""
    reason = Reason("CORRUPT_FILE", "the file's rows cannot be read")
    return replace(
        report,
        verdict=Verdict.ERRORED,
        reason=reason,
        checks=(),
        audited_hash="",
        rows_written=0,
        files=(),
    )


def crashed(report: AuditReport) -> None:
    """The run that dies before it writes a report."""


def run_job(run: str, script: Script, catalog: FakeCatalog, lake: FakeLake, jobs: FakeJobs) -> None:
    """Carry out a job run to its end, as spark_jobs.main does."""
    spec = jobs.spec(run)
    try:
        report = script(_append(spec, catalog))
    except UnknownBranch:
        report = None
    if report is None:
        jobs.end(run, RunState.FAILED, "Job execution failed. ExitCode: 1.")
        return
    lake.put_text(spec.report_key, report.to_json().encode())
    state = RunState.SUCCESS if report.verdict is Verdict.PASSED else RunState.FAILED
    jobs.end(run, state, "" if state is RunState.SUCCESS else "ExitCode: 3.")


def data_file(spec: JobSpec) -> str:
    """The name of the data file that this attempt writes of a landed object's rows."""
    return f"{spec.landed.uri}@{spec.landed.version}#{spec.attempt}"


def _append(spec: JobSpec, catalog: FakeCatalog) -> AuditReport:
    catalog.reset(spec.branch, spec.base_hash)
    table = catalog.table(spec.branch, spec.table) or FakeTable(f"uuid of {spec.branch}")
    audited = catalog.commit(spec.branch, spec.table, table.append(data_file(spec)))
    return AuditReport(
        ingestion=spec.ingestion,
        attempt=spec.attempt,
        verdict=Verdict.PASSED,
        reason=None,
        table=spec.table,
        branch=spec.branch,
        base_hash=spec.base_hash,
        audited_hash=audited,
        source=spec.landed,
        format="parquet",
        contract_id="shop-orders",
        contract_version="1.0.0",
        contract_sha256="0" * 64,
        rows_written=ROWS,
        checks=(PASSED,),
        started_at="2026-03-01T12:00:00.000+00:00",
        finished_at="2026-03-01T12:00:00.001+00:00",
        files=(DataFile(data_file(spec), ROWS, spec.landed.size),),
    )
