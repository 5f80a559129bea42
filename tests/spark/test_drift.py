"""Checks of drift: measured by the tiers, compared with published runs."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from functions.adapters.s3 import Lake
from infra.local.settings import LAKE_BUCKET
from lakegate.audit.drift import Baselines
from lakegate.audit.report import AuditReport, CheckResult, Status
from tests.spark.conftest import Job, changed
from tests.spark.measuring import custom

pytestmark = pytest.mark.spark
Contract = Callable[..., str]
QUALITY = (
    {"id": "size", "severity": "error", **custom("drift", of="rowCount")},
    {"id": "level", **custom("drift", of="mean", column="amount")},
    {"id": "gaps", **custom("drift", of="nullValues", column="amount")},
)


def by_id(report: AuditReport) -> dict[str, CheckResult]:
    return {check.id.rpartition(".")[2]: check for check in report.checks if check.baseline}


def rows(number: int, amount: float = 10.0) -> bytes:
    return changed(
        id=list(range(number)),
        name=["n1"] * number,
        amount=[amount] * number,
        day=[None] * number,
    )


def test_drift_is_checked_after_seven_runs(job: Job, contract: Contract, table: str) -> None:
    """Drift is skipped before seven published runs, and checked from then on."""
    text, lake = contract("parquet", *QUALITY), Lake(job.services.s3, LAKE_BUCKET)
    known, etag = lake.baselines(table)
    first = job.ingest(rows(20), text, table)
    found = by_id(first)
    assert {check.status for check in found.values()} == {Status.SKIPPED}
    assert found["size"].message == "only 0 of 7 published runs"
    lake.put_baselines(of_seven(known, first), etag)
    usual = job.ingest(rows(21), text, table)
    assert {check.status for check in by_id(usual).values()} == {Status.PASS}
    strange = job.ingest(rows(40, 11.0), text, table)
    now = by_id(strange)
    assert {id_: check.status for id_, check in now.items()} == {
        "size": Status.FAIL,
        "level": Status.WARN,
        "gaps": Status.PASS,
    }
    assert now["size"].found == "40, off by 20: 20 is the median of 7 published runs"
    assert now["level"].tier == "history"


def of_seven(known: Baselines, report: AuditReport) -> Baselines:
    """Return baselines as if seven runs had measured the same."""
    for number in range(7):
        known = known.adding(replace(report, ingestion=str(number)))
    return known
