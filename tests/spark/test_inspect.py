"""`lakegate inspect` finds on a branch what the job's audit counted there."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import boto3
import pyarrow as pa
import pytest

from access.evidence.failing_rows import Inspection, Question, inspection
from access.tables.reader import Reader
from access.tables.rows import Evidence
from functions.adapters.s3 import Lake
from functions.model.contract_terms import ContractTerms
from functions.model.ingestion import Ingestion, State
from lakegate.audit.report import AuditReport
from lakegate.errors import LakegateError
from lakegate.job.jobspec import JobSpec
from tests.fakes.deployment import Deployment
from tests.spark.conftest import Job, parquet

pytestmark = pytest.mark.spark

NAN, INF = float("nan"), float("inf")
CONTRACT = """
kind: DataContract
apiVersion: v3.1.0
id: everything
version: 1.0.0
schema:
  - name: {table}
    logicalType: object
    quality:
      - {{id: few, metric: rowCount, mustBeLessThan: 3}}
      - type: custom
        engine: lakegate
        implementation: {{check: mean, column: small, mustBe: 77}}
      - type: custom
        engine: lakegate
        implementation: {{check: rowExpression, expression: "coalesce(small, 0) > 1000"}}
      - {{id: pairs, metric: duplicateValues, arguments: {{properties: [word, "odd \\"name\\", too"]}}, mustBe: 0}}
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint, required: true, unique: true}}
      - name: small
        logicalType: integer
        physicalType: int
        logicalTypeOptions: {{minimum: 2, exclusiveMaximum: 7}}
        quality:
          - {{metric: missingValues, arguments: {{missingValues: [3, null]}}, mustBe: 0}}
          - {{metric: nullValues, unit: percent, mustBeLessThan: 1}}
          - {{metric: invalidValues, arguments: {{validValues: [5, 6]}}, mustBe: 0}}
      - name: ratio
        logicalType: number
        logicalTypeOptions: {{minimum: 0.1}}
        quality:
          - {{metric: duplicateValues, mustBe: 0}}
          - {{metric: missingValues, arguments: {{missingValues: [0.1]}}, mustBe: 0}}
          - {{metric: invalidValues, arguments: {{validValues: [0.5, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}}, mustBe: 0}}
      - name: short
        logicalType: number
        physicalType: float
        logicalTypeOptions: {{exclusiveMinimum: 0.1, maximum: 0.3}}
      - name: price
        logicalType: number
        physicalType: decimal(38,2)
        logicalTypeOptions: {{exclusiveMinimum: 0.01, maximum: 123456789012345678901234567890.12}}
        quality:
          - {{metric: duplicateValues, mustBe: 0}}
      - name: word
        logicalType: string
        physicalType: varchar(3)
        logicalTypeOptions: {{minLength: 2, format: hostname}}
        quality:
          - {{metric: missingValues, arguments: {{missingValues: ["", " ", "N/A", "it's"]}}, mustBe: 0}}
          - {{metric: invalidValues, arguments: {{validValues: ["ab", "it's", "Zoë"]}}, mustBe: 0}}
          - {{metric: duplicateValues, mustBe: 0}}
      - name: 'odd "name", too'
        logicalType: string
        quality:
{patterns}
      - {{name: seen, logicalType: date, logicalTypeOptions: {{minimum: "2013-01-02", exclusiveMaximum: "2013-02-01"}}}}
      - {{name: at, logicalType: timestamp, logicalTypeOptions: {{minimum: "2013-01-01T01:00:00+01:00", maximum: "2013-12-31T23:59:59.5Z"}}}}
      - {{name: wall, logicalType: timestamp, physicalType: timestamp_ntz, logicalTypeOptions: {{exclusiveMinimum: "2013-01-01T00:00:00", maximum: "2013-12-31T23:59:59"}}}}
      - {{name: clock, logicalType: time, logicalTypeOptions: {{minimum: "08:00:00"}}}}
      - {{name: flag, logicalType: boolean, enum: [{{value: true}}], quality: [{{metric: missingValues, arguments: {{missingValues: [true]}}, mustBe: 0}}]}}
      - {{name: blob, logicalType: string, physicalType: binary, required: true, quality: [{{metric: duplicateValues, mustBe: 0}}]}}
"""  # noqa: E501 - one rule a line
PATTERNS = (
    r"^[0-9]{2}$",
    r"\bno\b",
    r"^\p{Lu}[\P{L}\-]",
    r"^.\S.$",
    r"^(?=.*\d)(?!x)",
    r"^[^\p{Nd}\s]+$",
    r"\u00e9|\ud83d\ude00|\\z",
    r"^\w+?\W*$",
)


def every_rule(table: str) -> str:
    rule = "          - {{metric: invalidValues, arguments: {{pattern: '{0}'}}, mustBe: 0}}"
    patterns = "\n".join(rule.format(pattern) for pattern in PATTERNS)
    return CONTRACT.format(table=table, patterns=patterns)


_MOMENTS = [
    datetime.fromisoformat(text)
    for text in ("2012-12-31T23:59:59.999999", "2013-01-01", "2013-12-31T23:59:59.500001")
]
_FAR = [datetime.fromisoformat(text) for text in ("0001-01-01", "9999-01-01")]
_ZONED, _FAR_ZONED = ([m.replace(tzinfo=UTC) for m in moments] for moments in (_MOMENTS, _FAR))
COLUMNS: dict[str, pa.Array] = {
    "id": pa.array([1, 1, 1, None, None, 2, 3, 4, 5, 6, 7, 8], pa.int64()),
    "small": pa.array([1, 2, 3, 3, 6, 7, 8, None, None, 5, -1, 5], pa.int32()),
    "ratio": pa.array([NAN, NAN, INF, -INF, 0.1, 0.1, 0.0, -0.0, None, None, 0.5, 0.09999]),
    "short": pa.array(
        [0.1, 0.2, 0.3, 0.30000001, 0.31, NAN, None, -0.0, INF, 0.1, 0.3, 0], pa.float32()
    ),
    "price": pa.array(
        [Decimal(p) if p else None for p in ("0.01", "0.02", "-1.00", "1.10", "1.10", None)]
        + [
            Decimal("123456789012345678901234567890.12"),
            Decimal("123456789012345678901234567890.13"),
        ]
        + [Decimal(n) for n in range(4)],
        pa.decimal128(38, 2),
    ),
    "word": pa.array(
        ["ab", "ab", "", " ", "N/A", "it's", "Zoë", "😀😀😀", "😀😀😀😀", None, None, "a\u0301b"]
    ),
    'odd "name", too': pa.array(
        ["12", "12", "12\n", "oh no!", "Éa", "é", "😀", "\u0663\u0664", "\\z", "", None, "a\u2028b"]
    ),
    "seen": pa.array(
        [date(2013, 1, d) for d in range(1, 9)]
        + [date(2013, 2, 1), None, date(1, 1, 1), date(9999, 12, 31)]
    ),
    "at": pa.array([*_ZONED * 3, None, *_FAR_ZONED]),
    "wall": pa.array([*_MOMENTS * 3, None, *_FAR]),
    "clock": pa.array(
        ["07:59:59", "08:00:00", "8:00:00", "24:00:00", "23:59:59", "", None] + 5 * ["09:00:00\n"]
    ),
    "flag": pa.array([True, False, None] * 4),
    "blob": pa.array([b"", b"", b"\xff\x00", b"\xff\x00", None, None, b"a", *([b"b"] * 5)]),
}


def inspected(job: Job, spec: JobSpec, report: AuditReport, question: Question) -> Inspection:
    """Return what `inspect` shows with access to the catalog only."""
    adapters = replace(Deployment().adapters, lake=Lake(boto3.client("s3"), spec.lake_bucket))
    ingestion = Ingestion(
        id=spec.ingestion,
        landed=spec.landed,
        state=State.REJECTED,
        terms=ContractTerms(contract_key=spec.contract_key, contract_version=spec.contract_version),
        report_key=spec.report_key,
    )
    reader_token = job.services.tokens["reader"]

    def evidence_of(report: AuditReport) -> AbstractContextManager[Evidence]:
        iceberg = f"{job.services.nessie_uri}/iceberg"
        reference = f"{report.branch}@{report.audited_hash}"
        return Reader(iceberg, reader_token, reference).rows(report.table, whole=False)

    return inspection(adapters, ingestion, question, evidence_of)


def test_every_check_finds_what_the_audit_found(job: Job, table: str) -> None:
    """For every kind of rule `inspect` and the audit count the same rows."""
    spec = job.spec(
        job.services.land("tests/everything", parquet(COLUMNS, row_group_size=5)),
        every_rule(table),
        table,
    )
    report = job.run(spec)
    found = inspected(job, spec, report, Question())
    assert [finding.result.id for finding in found.findings if not finding.agrees] == []
    assert len(found.findings) == len(report.failed) > 30


def test_only_the_files_own_rows_are_shown(
    job: Job, table: str, contract: Callable[..., str]
) -> None:
    """Rows that main already has are neither shown nor counted.

    After the branch was deleted, the error names it.
    """
    services = job.services
    first: dict[str, list[Any]] = {
        "id": [1, 2],
        "name": ["n1", "n2"],
        "amount": [1.0, 2.0],
        "day": [None, None],
    }
    second: dict[str, list[Any]] = {
        "id": [1, 3, 3],
        "name": ["n1", "x", "n3"],
        "amount": [-1.0, 2.0, 3.0],
    }
    job.publish(job.ingest(json_lines(first), contract("json"), table))
    landed = services.land("tests/second", json_lines(second) + b'{"id": 9, "amount": "no"}\n')
    spec = job.spec(landed, contract("json"), table)
    report = job.run(spec)
    found = inspected(job, spec, report, Question())

    shown = {finding.result.id: finding for finding in found.findings}
    assert {id_: [row.get("id") for row in f.rows] for id_, f in shown.items()} == {
        "id.duplicateValues": ["3", "3"],
        "name.invalidValues": ["3"],
        "amount.invalidValues": ["1"],
        "file.rows_readable": [None],
    }
    assert all(finding.agrees for finding in found.findings)
    (row,) = shown["amount.invalidValues"].rows
    assert job.services.s3.head_object(**address(row["_file"]))
    assert row["_pos"] == 0

    services.catalog.delete_branch(report.branch)
    with pytest.raises(LakegateError, match=f"UNKNOWN_REFERENCE.*{report.branch}"):
        inspected(job, spec, report, Question())


def json_lines(columns: Mapping[str, Sequence[Any]]) -> bytes:
    rows = zip(*columns.values(), strict=True)
    lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
    return "".join(f"{line}\n" for line in lines).encode()


def address(uri: str) -> dict[str, str]:
    parts = urlsplit(uri)
    return {"Bucket": parts.netloc, "Key": parts.path.lstrip("/")}
