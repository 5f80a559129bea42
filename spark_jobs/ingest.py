"""One run: open the landed object, append it, audit it in the same pass, say what was found."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol

from pyspark import __version__ as spark_version
from pyspark.sql import DataFrame, SparkSession

from lakegate.baselines import Baselines
from lakegate.contract import Contract
from lakegate.errors import Permanent
from lakegate.jobspec import JobSpec
from lakegate.report import AuditReport, DataFile, Reason, Verdict
from spark_jobs import audit, drifts, iceberg, quarantine
from spark_jobs.append import append_watched
from spark_jobs.meter import Meter, now
from spark_jobs.read import Bytes
from spark_jobs.samples import with_samples
from spark_jobs.transform import open_file
from spark_jobs.write import open_table, with_undeclared


class Landing(Bytes, Protocol):
    """The landed object, and what it has to keep to; as `storage.Storage`."""

    def contract(self) -> Contract:
        """The contract."""

    def pinned(self) -> AbstractContextManager[str]:
        """An address of exactly the landed version, for a while."""

    def baselines(self) -> Baselines:
        """What the table's published runs measured."""


class Standing(Protocol):
    """Where the run's rows go; as `branch.Branch`."""

    @property
    def token(self) -> str:
        """The bearer token."""

    def head(self) -> str:
        """The hash that the branch stands at."""


Keep = Callable[[DataFrame, str], tuple[DataFile, ...]]


def _nowhere(rows: DataFrame, run_ts: str) -> tuple[DataFile, ...]:
    """Leave the rows that were kept out where they are."""
    return ()


def ingest(
    spec: JobSpec,
    storage: Landing,
    spark: SparkSession,
    branch: Standing,
    keep: Keep = _nowhere,
) -> AuditReport:
    """Carry one landed object onto its branch and audit it there.

    `keep` is given the rows that are kept out of the table, and when the run began.
    Raises Permanent when the file cannot be read or written, Transient when a retry may help.
    """
    meter = Meter(spark)
    contract = storage.contract()
    with storage.pinned() as path:
        with meter.step("open"):
            source = open_file(spark, path, with_undeclared(spark, contract), storage)
        if source.findings:
            refused = audit.refused(source.findings)
            return report(
                spec,
                meter,
                contract,
                verdict=Verdict.REJECTED,
                checks=refused[0],
                reason=refused[1],
            )
        contract = replace(contract, columns=source.columns)
        with meter.step("append"):
            table = open_table(spark, contract)
            run, rows, ridden = append_watched(spec, branch.token, source, contract, table)
            audited_hash = branch.head()
        with meter.step("quarantine"):
            kept = quarantine.kept_out(source.rows, contract) if rows.kept_out else None
            records = keep(kept, meter.started_at) if kept else ()
        with meter.step("audit"):
            measured = audit.measure(run, ridden)
            results = audit.judge(contract, rows, measured)
            results = drifts.compared(results, contract, measured, storage.baselines)
        with meter.step("samples"):
            results = with_samples(results, run, source.rows)
    verdict, reason = audit.verdict(results)
    return report(
        spec,
        meter,
        contract,
        verdict=verdict,
        reason=reason,
        checks=results,
        audited_hash=audited_hash,
        rows_read=rows.read,
        rows_rejected=rows.kept_out,
        rows_written=rows.written,
        files=tuple(map(iceberg.described, run.files)),
        source_rows=source.source_rows,
        schema_changes=(*source.changes, *table.changes),
        records=records,
    )


def errored(spec: JobSpec, error: Permanent) -> AuditReport:
    """The report of a run that could not read or write its file."""
    reason = Reason(error.code, error.message)
    return report(spec, None, None, verdict=Verdict.ERRORED, reason=reason)


def report(
    spec: JobSpec, meter: Meter | None, contract: Contract | None, **found: Any
) -> AuditReport:
    """The report of a run, with what it `found`, if anything."""
    empty = AuditReport(
        ingestion=spec.ingestion,
        attempt=spec.attempt,
        verdict=Verdict.ERRORED,
        reason=None,
        table=spec.table,
        branch=spec.branch,
        base_hash=spec.base_hash,
        audited_hash="",
        source=spec.landed,
        format=contract.format if contract else "",
        contract_id=contract.id if contract else "",
        contract_version=contract.version if contract else "",
        contract_sha256=contract.sha256 if contract else "",
        rows_written=0,
        transform=contract.transform if contract else "",
        checks=(),
        started_at=meter.started_at if meter else now(),
        finished_at=now(),
        steps=meter.steps if meter else (),
        engine={"spark": spark_version},
    )
    return replace(empty, **found)
