"""Build the audit report, and write the data files that belong to it."""

from dataclasses import replace
from typing import Any

from pyspark import __version__ as spark_version

from lakegate.audit.report import AuditReport, Reason, Verdict
from lakegate.contract.model import Contract
from lakegate.errors import Permanent
from lakegate.job.jobspec import JobSpec
from lakegate.refusals import RightMissing
from spark_jobs.spark.step_metrics import Meter, now


def errored(spec: JobSpec, error: Permanent | RightMissing) -> AuditReport:
    """Return the report of a run that could not read or write its file."""
    reason = Reason(error.code, error.message)
    return report(spec, None, None, verdict=Verdict.ERRORED, reason=reason)


def report(
    spec: JobSpec, meter: Meter | None, contract: Contract | None, **fields: Any
) -> AuditReport:
    """Return the report of a run with these `fields`."""
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
    return replace(empty, **fields)
