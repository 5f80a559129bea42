"""Rows in quarantine: counted, stored with their reasons, and limited."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F

from lakegate.audit.audit_tables import QUARANTINE
from lakegate.audit.report import AuditReport, CheckResult, Status, Tier, Verdict
from lakegate.contract.model import parse
from spark_jobs.audit import verdict
from spark_jobs.audit.run import Measured, RowCounts
from spark_jobs.files.source import BAD_ROW
from spark_jobs.write import quarantine
from tests.spark.conftest import Job, parquet, reason
from tests.spark.measuring import contract_of, custom, frame, options, reading_session

pytestmark = pytest.mark.spark
_QUARANTINE = options(onBadRow="quarantine")
# Five rows: the second has a bad amount and a bad name, the id of the fourth is unparseable.
_CSV = b"id,amount,name\n1,1,n1\n2,-1,x\n3,3,n3\nx,4,n4\n5,5,\n"
_FEW = {"maxRows": 2, "unreadable": True}


def _contract(table: str, limits: Mapping[str, Any], *rules: Mapping[str, Any]) -> str:
    amount = {"name": "amount", "logicalType": "integer", "logicalTypeOptions": {"minimum": 0}}
    name = {"name": "name", "logicalType": "string", "logicalTypeOptions": {"pattern": "^n"}}
    total = custom("sum", mustBe=9)
    columns = [
        {"name": "id", "logicalType": "integer", "required": True},
        {**amount, **_QUARANTINE, "quality": [total, *rules]},
        name,
    ]
    return contract_of(columns, table=table, format="csv", quarantine=limits)


def _outcome(report: AuditReport) -> tuple[int, int, int]:
    return report.rows_read, report.rows_rejected, report.rows_written


def test_bad_rows_are_quarantined_and_the_others_published(job: Job, table: str) -> None:
    """Quarantined and written rows add up, and other checks see only written rows."""
    report = job.ingest(_CSV, _contract(table, _FEW), table)
    assert (report.verdict, _outcome(report)) == (Verdict.PASSED, (5, 2, 3))
    found = {check.id: check for check in report.checks}
    assert (found["amount.invalidValues"].counted, found["name.invalidValues"].counted) == (1, 0)
    warned = {id_ for id_, check in found.items() if check.status is Status.WARN}
    assert warned == {"amount.invalidValues", "file.quarantine", "file.rows_readable"}
    assert sorted(row["id"] for row in job.rows(table, report.branch)) == [1, 3, 5]


@pytest.mark.parametrize(
    ("limits", "bad", "why"),
    [
        ({"maxRows": 1, "unreadable": True}, 1, "BAD_ROWS"),
        ({"maxRows": 1}, 0, "QUARANTINE_FULL"),
        ({"maxPercent": 40, "unreadable": True}, 1, ""),
        ({"maxPercent": 39.9, "unreadable": True}, 1, "BAD_ROWS"),
        ({"maxRows": 2, "maxPercent": 39.9, "unreadable": True}, 0, "QUARANTINE_FULL"),
        ({"maxRows": 2}, 1, "BAD_ROWS"),
    ],
)
def test_each_limit_is_for_itself(limits: dict[str, Any], bad: int, why: str) -> None:
    """A file is rejected beyond either limit, and for unparseable rows that are not allowed."""
    _, found = verdict.verdict(_judged(limits, RowCounts(read=5, bad=bad, quarantined=2)))
    assert (found.code if found else "") == why


def test_above_the_limit_what_fills_the_quarantine_fails_the_file() -> None:
    """Unparseable rows and the broken check are failures, so they are told with their rows."""
    results = _judged({"maxRows": 1, "unreadable": True}, RowCounts(5, bad=1, quarantined=2))
    failed = [each.id for each in results if each.status is Status.FAIL]
    assert failed == ["file.rows_readable", "file.quarantine", "amount.invalidValues"]


def test_a_file_in_quarantine_as_a_whole_is_not_called_empty() -> None:
    """The reason is the quarantine's limit, not the lack of rows that follows from it."""
    _, found = verdict.verdict(_judged({"maxRows": 1}, RowCounts(5, bad=0, quarantined=5)))
    assert found
    assert found.code == "QUARANTINE_FULL"


def _judged(limits: dict[str, Any], rows: RowCounts) -> Sequence[CheckResult]:
    """Return the results of a file of which one row has a bad amount, if any is quarantined."""
    contract = parse(_contract("tests.limits", limits), "limits.yaml")
    values = {"sum": 9, "invalidValues": 1}
    measured = {
        check.id: Measured(values.get(check.metric, 0) if "amount" in check.id else 0, 3, Tier.SCAN)
        for check in contract.checks
    }
    return verdict.judge(contract, rows, measured)


def test_unparseable_cells_become_null_on_request_only(job: Job, table: str) -> None:
    """Unparseable rows are quarantined; on request such cells become null instead."""
    columns: list[Mapping[str, Any]] = [
        {"name": "id", "logicalType": "integer", "required": True},
        {"name": "mail", "logicalType": "string", "classification": "confidential"},
    ]
    contract = contract_of(columns, table=table, format="csv")
    landed = job.services.land(f"{table}/file", b"id,mail\n1,a@b\nx,c@d\n3,e@f,\n4,g@h\n")
    spec = job.spec(landed, contract, table)
    report = job.run(spec)
    assert reason(report).code == "BAD_ROWS", report.reason
    assert (_outcome(report), report.holds_nulls) == ((4, 2, 2), False)
    (check,) = report.failed
    cells = [(sample["place"], sample["column"], sample["value"]) for sample in check.samples]
    assert cells == [("line 3", "id", "(hidden)"), ("line 4", "the whole row", "(hidden)")]
    assert "c@d" not in report.to_json()
    folder = QUARANTINE.files(spec.lake_bucket)
    assert sum(file.rows for file in report.records if file.path.startswith(folder)) == 2
    again = job.services.spec(landed, spec.contract_version, table, attempt=2)
    report = job.run(replace(again, null_unreadable=True))
    assert report.verdict is Verdict.REJECTED
    assert (_outcome(report), report.rows_nulled) == ((4, 0, 4), 2)
    assert report.failed[0].found == "2 of 4 rows could not be read"
    assert report.failed[0].message == "such cells became null"
    rows = [(row["id"], row["mail"]) for row in job.rows(table, report.branch)]
    assert sorted(rows, key=str) == [(1, "a@b"), (4, "g@h"), (None, "c@d"), (None, None)]


def test_no_part_of_an_unparseable_text_is_published(job: Job, table: str) -> None:
    """On request a cell becomes null, also where Spark could make another value of it."""
    bad = {
        "price": ("number", "decimal(5,2)", "1.239"),
        "size": ("number", "double", "1e999"),
        "day": ("date", None, "2013-12-31 or so"),
        "at": ("timestamp", None, "2013-12-31T10:00:00.1234567Z"),
    }
    columns = [
        {"name": name, "logicalType": logical, **({"physicalType": type_} if type_ else {})}
        for name, (logical, type_, _) in bad.items()
    ]
    body = ",".join(bad) + "\n" + ",".join(text for *_, text in bad.values()) + "\n"
    landed = job.services.land(f"{table}/file", body.encode())
    spec = job.spec(landed, contract_of(columns, table=table, format="csv"), table)
    report = job.run(replace(spec, null_unreadable=True))
    assert (_outcome(report), report.rows_nulled) == ((1, 0, 1), 1)
    assert job.rows(table, report.branch) == [dict.fromkeys(bad)]


def test_no_stored_value_that_cannot_be_read_is_published(job: Job, table: str) -> None:
    """On request a value that its type cannot hold becomes null, and the row's others stay."""
    body = parquet({"id": [1], "at": pa.array([1], pa.timestamp("ns", "UTC"))})
    columns = [{"name": "id", "logicalType": "integer"}, {"name": "at", "logicalType": "timestamp"}]
    landed = job.services.land(f"{table}/file", body)
    spec = job.spec(landed, contract_of(columns, table=table), table)
    report = job.run(replace(spec, null_unreadable=True))
    assert report.rows_nulled == 1
    assert job.rows(table, report.branch) == [{"id": 1, "at": None}]


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("1=1) OR (2=2", "BAD_CONDITION"),
        ("nobody > 0", "BAD_CONDITION"),
        ("amount IN (SELECT 1)", "CONTRACT_INVALID"),
        ("1 / (amount - 1) < 9", "BAD_VALUE"),
    ],
)
def test_a_condition_for_quarantine_that_fails_ends_the_run(
    job: Job, table: str, expression: str, code: str
) -> None:
    """A condition that cannot be evaluated ends the run with its reason, and nothing is written."""
    rule = {**custom("rowExpression", expression=expression), **_QUARANTINE}
    report = job.ingest(_CSV, _contract(table, _FEW, rule), table)
    assert (report.verdict, report.audited_hash) == (Verdict.ERRORED, "")
    assert reason(report).code == code


def test_every_quarantined_row_has_its_reasons(job: Job) -> None:
    """A row is quarantined once, with all its reasons, as JSON or as it stands in the file."""
    positive = {**custom("rowExpression", expression="amount > -5"), **_QUARANTINE, "id": "far"}
    contract = parse(_contract("tests.kept", _FEW, positive), "kept.yaml")
    rows = [(1, 1, "n1"), (2, -1, "x"), (3, -9, None), (None, 4, "n4"), (5, None, None)]
    spark = reading_session(job.warm_spark)
    bad = F.when(F.col("id").isNull(), F.lit("x,4,n4")).alias(BAD_ROW)
    source = frame(spark, contract, rows).select("*", bad)
    assert sorted(quarantine.quarantined_rows(source, contract).collect()) == sorted(
        [
            Row(row='{"id":2,"amount":-1,"name":"x"}', reasons=["amount.invalidValues"]),
            Row(row='{"id":3,"amount":-9}', reasons=["amount.invalidValues", "amount.far"]),
            Row(row="x,4,n4", reasons=["file.rows_readable"]),
        ]
    )
