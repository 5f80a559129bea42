"""One run: open the landed object, append it, audit it in the same pass, say what was found."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark import __version__ as spark_version
from pyspark.sql import Observation, SparkSession

from lakegate import times
from lakegate.contract import Contract
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.report import AuditReport, CheckResult, DataFile, Reason, Verdict
from spark_jobs import audit, beyond
from spark_jobs.branch import Branch
from spark_jobs.checks import ROWS, aggregates
from spark_jobs.read import BAD_ROW, Source, open_source
from spark_jobs.storage import Storage
from spark_jobs.write import append, open_table


def now() -> str:
    """The time, ISO 8601 in UTC with milliseconds."""
    return times.text(datetime.now(UTC))


@dataclass(frozen=True)
class Clock:
    """When a run began, and how long its steps took, in seconds."""

    started_at: str = field(default_factory=now)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure one step."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(time.perf_counter() - start, 3)


def ingest(spec: JobSpec, storage: Storage, spark: SparkSession, branch: Branch) -> AuditReport:
    """Carry one landed object onto its branch and audit it there.

    Raises Permanent when the file cannot be read or written, Transient when a retry may help.
    """
    clock = Clock()
    contract = storage.contract()
    with storage.pinned() as path:
        with clock.step("open"):
            source = open_source(spark, path, contract, storage)
        if source.findings:
            results, reason = audit.refused(source.findings)
            return _report(spec, clock, contract, results, Verdict.REJECTED, reason)
        with clock.step("append"):
            counts, files = _append(spark, source, contract, spec)
            audited_hash = branch.head()
        with clock.step("audit"):
            counts |= audit.count_duplicates(source.rows, contract)
            counts |= beyond.count_appended(spark, spec, branch.token, source.rows, contract)
            results = audit.judge(contract, counts)
            results = audit.with_samples(results, source.rows, contract)
    return _report(spec, clock, contract, results, *audit.verdict(results), files, audited_hash)


def errored(spec: JobSpec, error: Permanent) -> AuditReport:
    """The report of a run that could not read or write its file."""
    reason = Reason(error.code, error.message)
    return _report(spec, Clock(), None, (), Verdict.ERRORED, reason)


def _append(
    spark: SparkSession, source: Source, contract: Contract, spec: JobSpec
) -> tuple[dict[str, int], tuple[DataFile, ...]]:
    """Append and count in one pass over the file."""
    observed = Observation("audit")
    rows = source.rows.observe(observed, *aggregates(contract)).drop(BAD_ROW)
    files = append(rows, open_table(spark, contract), contract, spec.ingestion)
    written = _rows_in(files)
    counts = {name: int(value) for name, value in observed.get.items()}
    if counts[ROWS] != written:
        message = f"{counts[ROWS]:,} rows were audited, but {written:,} were written"
        raise Permanent("COUNT_MISMATCH", message)
    if source.promised_rows not in (None, written):
        message = f"the file promises {source.promised_rows:,} rows; {written:,} can be read"
        raise Permanent("CORRUPT_FILE", message)
    return counts, files


def _rows_in(files: tuple[DataFile, ...]) -> int:
    return sum(file.rows for file in files)


def _report(
    spec: JobSpec,
    clock: Clock,
    contract: Contract | None,
    results: tuple[CheckResult, ...],
    verdict: Verdict,
    reason: Reason | None,
    files: tuple[DataFile, ...] = (),
    audited_hash: str = "",
) -> AuditReport:
    return AuditReport(
        ingestion=spec.ingestion,
        attempt=spec.attempt,
        verdict=verdict,
        reason=reason,
        table=spec.table,
        branch=spec.branch,
        base_hash=spec.base_hash,
        audited_hash=audited_hash,
        source=spec.landed,
        format=contract.format if contract else "",
        contract_id=contract.id if contract else "",
        contract_version=contract.version if contract else "",
        contract_sha256=contract.sha256 if contract else "",
        rows_written=_rows_in(files),
        checks=results,
        started_at=clock.started_at,
        finished_at=now(),
        cost=clock.seconds,
        engine={"spark": spark_version},
        files=files,
    )
