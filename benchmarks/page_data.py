"""A deployment with much to show: a ledger of many ingestions, and a table of many rows."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from functions.adapters.ledger.items import to_item
from functions.model.audit_outcome import AuditOutcome
from functions.model.contract_terms import ContractTerms
from functions.model.decisions import Decisions
from functions.model.ingestion import ALERTED, Ingestion, State
from functions.model.merge_commit import message, properties
from infra.local.settings import LAKE_BUCKET
from lakegate import times
from lakegate.audit.report import AuditReport, CheckResult, Reason, Status, Step, Verdict
from lakegate.job.landing import LandedObject, branch_name, ingestion_id, report_key
from tests.services import LANDING, Services

TABLE = "shop.orders"
COLUMNS = {"id": "integer", "customer": "integer", "amount": "number", "status": "string"}
_TABLES = (TABLE, TABLE, TABLE, "shop.customers", "shop.returns", "nyc.flights", "web.clicks")
_OWNERS = {"nyc": "Flight data", "shop": "Shop team", "web": "Web analytics"}
_DAYS = 7
_UNDECIDED = 0.03  # of the failures; all others were discarded
_FILES = 20
_ENDS = (State.REJECTED, State.ERRORED, State.SUBMITTED, State.IGNORED)
_REASONS = {
    State.REJECTED: Reason(
        "CHECKS_FAILED", "2 of 8 checks failed: amount.plausible, status.invalidValues"
    ),
    State.ERRORED: Reason("CORRUPT_FILE", "the file ends in the middle of a row group"),
    State.IGNORED: Reason("IGNORED_KEY", "names that begin with '_' or '.' are not data"),
}


def ingestions(many: int, now: datetime) -> Iterator[Ingestion]:
    """Return ingestions of the last days, more by day than by night; they follow the arguments."""
    draw = random.Random(7)  # noqa: S311  no secret
    for number in range(many):
        share = (many - number) / many
        swing = timedelta(hours=3 * np.sin(2 * np.pi * _DAYS * share))
        yield _ingestion(draw, number, now - timedelta(days=_DAYS * share - 0.02) + swing)


def _ingestion(draw: random.Random, number: int, landed_at: datetime) -> Ingestion:
    table = draw.choice(_TABLES)
    key = f"{table.replace('.', '/')}/part-{number:05}.parquet"
    landed = LandedObject(
        LANDING, key, f"v{number}", f"e{number}", 20_000, landed_at=times.text(landed_at)
    )
    id_, state = ingestion_id(landed), State.PUBLISHED
    if draw.random() < 0.06:
        state = draw.choices(_ENDS, [6, 3, 1, 2])[0]
    owner = _OWNERS[table.partition(".")[0]]
    begun = Ingestion(
        id_, landed, state=state, terms=ContractTerms(table=table, owner=owner), alerted=True
    )
    took = [draw.lognormvariate(mean, 0.5) for mean in (0, 0, 2.2, 0)]
    steps = ("branched", "submitted", "audited", state.value)
    for step in steps:
        landed_at += timedelta(seconds=took[steps.index(step)])
        begun = begun.step(step, times.text(landed_at))
    return replace(
        begun,
        times={"landed": landed.landed_at, **begun.times},
        branch=branch_name(table, key, id_, 1),
        terms=replace(begun.terms, contract_key=f"contracts/{table}.yaml"),
        report_key=report_key(table, id_, 1),
        audited_hash="a" * 64,
        base_hash="b" * 64,
        merge_hash="c" * 64 if state is State.PUBLISHED else "",
        audit=replace(
            begun.audit,
            rows=0 if state in (State.ERRORED, State.IGNORED) else draw.randrange(200, 5_000),
            check_counts={"pass": 10, "fail": 2} if state is State.REJECTED else {"pass": 12},
        ),
        decisions=Decisions(discarded=state in ALERTED and draw.random() > _UNDECIDED),
        cleaned=True,
        saved_at=times.text(landed_at),
        reason=_REASONS.get(state),
    )


def fill_ledger(table: Any, all_of_them: list[Ingestion]) -> None:
    """Put the ingestions into the ledger; `table` is boto3's."""
    with table.batch_writer() as batch:
        for each in all_of_them:
            batch.put_item(Item=to_item(each))


def fill_table(running: Services, rows: int) -> None:
    """Give main a table of so many rows in a few files, written by pyiceberg.

    The files are registered as publishing does, branch by branch, so that main's log shows them.
    """
    main = running.at("main")
    main.create_namespace_if_not_exists("shop")
    part = _rows(rows // _FILES)
    main.create_table(TABLE, part.schema, location=f"s3://{LAKE_BUCKET}/warehouse/shop/orders")
    for number in range(_FILES):
        branch = f"ingest/{TABLE}/bench-{number}"
        base = running.catalog.create_branch(branch)
        running.at(branch).load_table(TABLE).append(part)
        published = _published(number, len(part))
        head = running.catalog.head(branch)
        running.catalog.merge(branch, head, base, message([published]), properties([published]))
        running.catalog.delete_branch(branch)


def fill_branch(running: Services, rejected: Ingestion) -> Ingestion:
    """Give a rejected ingestion of the table a branch with its rows, and return it."""
    base = running.catalog.create_branch(rejected.branch)
    running.at(rejected.branch).load_table(TABLE).append(_rows(rejected.audit.rows))
    audited = running.catalog.head(rejected.branch)
    return replace(rejected, base_hash=base, audited_hash=audited, cleaned=False)


def _published(number: int, rows: int) -> Ingestion:
    key = f"shop/orders/{number}.parquet"
    landed = LandedObject(LANDING, key, f"v{number}", "e", 1, landed_at="2026-01-01")
    return Ingestion(
        ingestion_id(landed),
        landed,
        terms=ContractTerms(table=TABLE),
        audit=AuditOutcome(rows=rows),
    )


def _rows(many: int) -> pa.Table:
    draw = np.random.default_rng(7)
    return pa.table(
        {
            "id": np.arange(many),
            "customer": draw.integers(0, 100_000, many),
            "amount": draw.normal(60, 20, many),
            "status": draw.choice(["NEW", "PAID", "SHIPPED"], many),
        }
    )


def put_report(running: Services, of: Ingestion) -> None:
    """Put the audit report of a rejected ingestion into the lake."""
    report = AuditReport(
        ingestion=of.id,
        attempt=1,
        verdict=Verdict.REJECTED,
        reason=of.reason,
        table=of.table,
        branch=of.branch,
        base_hash=of.base_hash,
        audited_hash=of.audited_hash,
        source=of.landed,
        format="parquet",
        contract_id="shop-orders",
        contract_version="1.0.0",
        contract_sha256="d" * 64,
        rows_written=of.audit.rows,
        checks=tuple(_checks()),
        started_at=of.times["submitted"],
        finished_at=of.times["audited"],
        steps=(Step("open", 0.1), Step("append", 0.9), Step("audit", 0.2)),
    )
    running.s3.put_object(Bucket=LAKE_BUCKET, Key=of.report_key, Body=report.to_json().encode())


_ASKED = {  # the check, its column, and how many rows failed it
    "id.nullValues": ("id", 0),
    "id.duplicateValues": ("id", 0),
    "customer.nullValues": ("customer", 0),
    "amount.nullValues": ("amount", 0),
    "amount.plausible": ("amount", 14),
    "status.invalidValues": ("status", 3),
    "ordered_on.nullValues": ("ordered_on", 0),
    "ordered_on.notInTheFuture": ("ordered_on", 0),
}
_SAMPLES = {
    "amount.plausible": ("-12.50", "-3.00", "-128.40"),
    "status.invalidValues": ("LOST", "LOST", "paid"),
}


def _checks() -> Iterator[CheckResult]:
    for check, (column, many) in _ASKED.items():
        samples = tuple(
            {"id": f"{4711 + 37 * n}", "customer": f"{90210 - 7 * n}", column: value}
            for n, value in enumerate(_SAMPLES.get(check, ()))
        )
        status, found = (Status.FAIL, f"{many} rows") if many else (Status.PASS, "0 rows")
        columns, metric = (column,), check.rpartition(".")[2]
        yield CheckResult(check, metric, columns, "error", status, "0 rows", found, "", samples)
