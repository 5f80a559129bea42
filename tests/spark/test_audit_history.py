"""A run's results and quarantined rows are in the audit history once registered."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from access.tables.reader import Reader
from cli.tables.query import rows
from functions.adapters.iceberg.tables import Tables
from lakegate.audit.audit_tables import QUARANTINE, RESULTS, entries
from lakegate.audit.report import READABLE, AuditReport
from tests.spark.conftest import Job, changed, reason
from tests.spark.measuring import contract_of, options

pytestmark = pytest.mark.spark
Contract = Callable[..., str]
_RUN = "SELECT check_id, status, value, published FROM ops.audit_results WHERE run_id = '{}' ORDER"


def registered(job: Job, report: AuditReport, *, published: bool, again: bool = False) -> None:
    """Register a run's files in main's tables, as the publisher does."""
    services = job.services
    branch = f"publish/ops.audit_results/{report.ingestion[:12]}-{published}"
    base = services.catalog.create_branch(branch)
    tables = Tables(services.nessie_uri, services.tokens["publisher"], services.s3)
    bucket = report.records[0].path.split("/")[2]
    found = list(entries(report, bucket, published=published, again=again))
    tables.enter(found, bucket, branch)
    assert services.catalog.merge(branch, services.catalog.head(branch), base, "Record", {"k": "v"})
    services.catalog.delete_branch(branch)


def queried(job: Job, sql: str) -> list[tuple[Any, ...]]:
    """Return the answer of pyiceberg and duckdb for main."""
    reader = Reader(f"{job.services.nessie_uri}/iceberg", job.services.tokens["reader"], "main")
    with reader.answer(sql) as answer:
        return list(rows(answer))


def test_every_reader_finds_a_runs_results(job: Job, contract: Contract, table: str) -> None:
    """Spark and duckdb find one row for the run and one for each check, published later or not."""
    report = job.ingest(changed(amount=[0.0, 101.0, None]), contract(), table)
    registered(job, report, published=False)
    run = f"{report.ingestion}-1"
    found = queried(job, _RUN.format(run) + " BY check_id")
    assert found == sorted(
        [
            ("run", "fail", 3.0, False),
            *(
                (c.id, c.status.value, float(c.value) if c.value else None, False)
                for c in report.checks
            ),
        ]
    )
    in_spark = [row for row in job.rows(RESULTS.name, "main") if row["run_id"] == run]
    assert {row["check_id"] for row in in_spark} == {row[0] for row in found}
    assert {(row["published"], row["table_name"]) for row in in_spark} == {(False, table)}
    assert {row["run_ts"].isoformat() for row in in_spark} == {
        report.started_at.removesuffix("+00:00") + "000"
    }
    # Published on request: the run's rows are there once, as published.
    registered(job, report, published=True, again=True)
    sql = f"SELECT DISTINCT published, count(*) FROM ops.audit_results WHERE table_name = '{table}'"
    assert queried(job, sql + " GROUP BY 1") == [(True, len(report.checks) + 1)]


def test_an_errored_run_has_a_row(job: Job, contract: Contract, table: str) -> None:
    """A file that cannot be read leaves the run's own row, with the reason.

    A repeated run leaves the first try's files unchanged.
    """
    landed = job.services.land(f"{table}/file", b"no parquet")
    spec = job.spec(landed, contract(), table)
    first = job.run(spec)
    report = job.run(replace(spec, report_key=f"{spec.report_key}.again"))
    assert report.records[0].path != first.records[0].path
    registered(job, report, published=False)
    sql = f"SELECT status, message FROM ops.audit_results WHERE table_name = '{table}'"
    assert queried(job, sql) == [("error", reason(report).message)]


CHEAP: dict[str, Any] = {
    "id": "cheap",
    "metric": "invalidValues",
    "arguments": {"maximum": 100},
    "mustBe": 0,
    **options(onBadRow="quarantine"),
}


def test_quarantined_rows_are_found_with_their_reasons(job: Job, table: str) -> None:
    """Each is there for Iceberg's readers and Spark alike, as JSON or as it stands in its file."""
    columns: list[dict[str, Any]] = [
        {"name": "id", "logicalType": "integer", "required": True},
        {"name": "amount", "logicalType": "number", "quality": [CHEAP]},
    ]
    allowing = contract_of(
        columns, table=table, format="csv", quarantine={"maxRows": 5, "unreadable": True}
    )
    report = job.ingest(b"id,amount\n1,0\n2,101\nx,1\n3,4,5\n", allowing, table)
    assert (report.engine["write"], report.rows_rejected) == ("written by Arrow", 3)
    registered(job, report, published=True)
    names = ("row", "reasons", "published", "ingestion")
    reasons = {"3,4,5": READABLE, "x,1": READABLE, '{"id":2,"amount":101.0}': "amount.cheap"}
    rows = [(row, [why], True, report.ingestion) for row, why in reasons.items()]
    sql = f"SELECT {', '.join(names)} FROM ops.quarantine WHERE table_name = '{table}'"
    assert queried(job, f"{sql} ORDER BY row") == rows
    in_spark = [r for r in job.rows(QUARANTINE.name, "main") if r["table_name"] == table]
    assert sorted(tuple(r[name] for name in names) for r in in_spark) == rows
