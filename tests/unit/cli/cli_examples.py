"""Example ingestions, as the ledger would return them."""

from dataclasses import replace

from functions.model.ingestion import Ingestion, State
from lakegate.audit.report import Reason
from lakegate.job.landing import LandedObject

_LANDED = LandedObject(
    bucket="landing",
    key="shop/orders/[red] März.csv",
    version="v1",
    etag="e",
    size=1234,
    landed_at="2026-03-01T12:00:00.000+00:00",
)
PASSED_CHECK = {
    "id": "id.nullValues",
    "metric": "nullValues",
    "columns": ["id"],
    "severity": "error",
    "status": "pass",
    "expected": "0 rows",
    "found": "0 rows",
    "message": "",
}
_FAILED = {
    **PASSED_CHECK,
    "id": "total.range",
    "columns": ["total"],
    "status": "fail",
    "found": "3 rows",
}
_WARNED = {**PASSED_CHECK, "id": "few_late", "columns": [], "status": "warn", "found": "7 rows"}

LANDED = Ingestion(
    id="0123456789abcdef0123456789abcdef", landed=_LANDED, times={"landed": _LANDED.landed_at}
)
QUEUED = replace(
    LANDED,
    terms=replace(LANDED.terms, table="shop.orders"),
    is_shared=True,
    report_key="reports/shop.orders/0123456789abcdef0123456789abcdef/1.json",
    times={**LANDED.times, "queued": "2026-03-01T12:00:01.000+00:00"},
)
SUBMITTED = replace(
    LANDED,
    state=State.SUBMITTED,
    terms=replace(LANDED.terms, table="shop.orders"),
    branch="ingest/shop.orders/red-Marz-csv-0123456789ab",
    base_hash="b" * 64,
    job_run="00run",
    report_key="reports/shop.orders/0123456789abcdef0123456789abcdef/1.json",
)
AUDITED = replace(
    SUBMITTED,
    state=State.AUDITED,
    audited_hash="a" * 64,
    audit=replace(
        SUBMITTED.audit, rows=1842, check_counts={"pass": 1, "warn": 1}, checks=(_WARNED,)
    ),
)
PUBLISHED = replace(
    AUDITED,
    state=State.PUBLISHED,
    merge_hash="d" * 64,
    cleaned=True,
    times={**LANDED.times, "published": "2026-03-01T12:00:04.250+00:00"},
)
REJECTED = replace(
    AUDITED,
    state=State.REJECTED,
    audit=replace(
        AUDITED.audit, check_counts={"pass": 1, "warn": 1, "fail": 1}, checks=(_FAILED, _WARNED)
    ),
    reason=Reason("CHECKS_FAILED", "1 of 3 checks failed: total.range"),
    alerted=True,
)
ERRORED = replace(
    LANDED,
    state=State.ERRORED,
    reason=Reason("NO_CONTRACT", "no contract claims the key"),
    alerted=True,
)
IGNORED = replace(LANDED, state=State.IGNORED, reason=Reason("IGNORED_KEY", "it is a marker"))
