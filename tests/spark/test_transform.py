"""Transforms over real Spark, Nessie and S3."""

import io
import textwrap
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakegate.report import AuditReport, Verdict
from tests.spark.conftest import Job

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Table:
    """A table with the columns id (required) and price (decimal), at least 0."""

    job: Job
    name: str

    def ingest(
        self, sql: str, body: bytes, format_: str = "parquet", **settings: str
    ) -> AuditReport:
        text = textwrap.indent(sql, "      ")
        listed = "".join(f"\n  - {{property: {k}, value: {v}}}" for k, v in settings.items())
        contract = f"""
kind: DataContract
apiVersion: v3.1.0
id: {self.name}
version: 1.0.0
customProperties:
  - {{property: format, value: {format_}}}{listed}
  - property: transform
    value: |
{text}
schema:
  - name: {self.name}
    properties:
      - {{name: id, logicalType: integer, required: true}}
      - name: price
        logicalType: number
        physicalType: decimal(10,2)
        logicalTypeOptions: {{minimum: 0}}
"""
        return self.job.ingest(body, contract, self.name)[1]

    def rows(self, report: AuditReport) -> list[tuple[Any, ...]]:
        found = self.job.rows(self.name, report.branch)
        return sorted((row["id"], str(row["price"])) for row in found)


@pytest.fixture
def lake(job_runner: Job, table: str) -> Table:
    return Table(job_runner, table)


def parquet(**columns: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


FILE = parquet(
    order_no=["7", "8", "x"],
    cents=pa.array([150, 299, -1], pa.int32()),
    _file=pa.array([1, 2, 3], pa.int8()),  # which a table could not have
)
CENTS = "CAST(cents / 100 AS decimal(10,2)) AS price"


def test_the_result_is_audited_and_written_in_the_files_place(lake: Table) -> None:
    """The table has the result of the SELECT; the report has its text and both counts."""
    sql = f"SELECT CAST(order_no AS int) AS id, {CENTS}\nFROM file WHERE order_no <> 'x'"
    report = lake.ingest(sql, FILE)
    assert report.verdict is Verdict.PASSED, report.reason
    assert lake.rows(report) == [(7, "1.50"), (8, "2.99")]
    assert (report.transform, report.source_rows, report.rows_read) == (sql, 3, 2)
    assert report.schema_changes == ("column id: int widened to bigint",)


def test_what_the_transform_makes_can_be_rejected(lake: Table) -> None:
    """Checks read the result: a bad row in it rejects the file."""
    report = lake.ingest(f"SELECT try_cast(order_no AS bigint) AS id, {CENTS} FROM file", FILE)
    assert {check.id for check in report.failed} == {"id.nullValues", "price.invalidValues"}


@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("SELECT 1L AS id, cents / 3.0 AS price FROM file", "TYPE_MISMATCH", "'price' is decimal"),
        ("SELECT order_no AS id, NULL AS price FROM file", "TYPE_MISMATCH", "'id' is string"),
        ("SELECT 1L AS id FROM file", "MISSING_COLUMN", "'price' is missing"),
        ("SELECT 1L AS id, NULL AS price, cents FROM file", "EXTRA_COLUMN", "'cents'"),
        ("SELECT 1L AS id, 2L AS ID, NULL AS price FROM file", "DUPLICATE_COLUMN", "'id'"),
        ("SELECT nothing AS id, NULL AS price FROM file", "BAD_TRANSFORM", "`nothing`"),
        ("SELECT 1L AS id NULL AS price FROM file", "BAD_TRANSFORM", "near 'NULL'"),
        ("SELECT f.* FROM file f JOIN tests.other o ON 1 = 1", "BAD_TRANSFORM", "not tests.other"),
        ("SELECT f.* FROM parquet.`file` f", "BAD_TRANSFORM", "not parquet.file"),
        ("SELECT TRANSFORM (order_no) USING 'cat' AS (id) FROM file", "BAD_", "run a script"),
    ],
)
def test_a_result_or_a_text_that_does_not_fit_is_a_clear_rejection(
    lake: Table, sql: str, code: str, message: str
) -> None:
    """The result's columns are compared as a file's are; SQL that cannot run is rejected."""
    report = lake.ingest(sql, FILE)
    assert (report.verdict, report.audited_hash) == (Verdict.REJECTED, "")
    assert report.reason is not None
    assert report.reason.code.startswith(code)
    assert message in report.reason.message


def test_a_failed_cast_is_reported_without_the_value(lake: Table) -> None:
    """A failed cast ends the run errored at once, without the value in the message."""
    secret = parquet(order_no=["7", "a secret"], cents=pa.array([1, 2], pa.int32()))
    report = lake.ingest(f"SELECT CAST(order_no AS bigint) AS id, {CENTS} FROM file", secret)
    assert report.reason is not None
    assert report.reason.code == "BAD_VALUE"
    assert "CAST_INVALID_INPUT" in report.reason.message
    assert "secret" not in report.to_json()


CSV = b"Order No,cents\n007,150\n8,oops\n"
OF_CSV = """
SELECT CAST(`Order No` AS bigint) AS id,
       CAST(try_cast(cents AS int) / 100 AS decimal(10,2)) AS price
FROM file
"""


def test_cells_of_text_reach_the_transform_as_they_are(lake: Table) -> None:
    """Every cell of a text format is text, and columns may have any names."""
    report = lake.ingest(OF_CSV.strip(), CSV, "csv")
    assert report.verdict is Verdict.PASSED, report.reason
    assert lake.rows(report) == [(7, "1.50"), (8, "None")]
    uncast = lake.ingest("SELECT 1L AS id, `Order No` AS price FROM file", CSV, "csv")
    assert uncast.reason is not None
    assert uncast.reason.code == "TYPE_MISMATCH"


def test_rows_that_cannot_be_read_are_not_lost_in_the_transform(lake: Table) -> None:
    """An unparseable row does not reach the SQL, but still rejects the file."""
    report = lake.ingest(OF_CSV.strip(), CSV + b"9,1,more\n", "csv")
    assert report.verdict is Verdict.REJECTED
    assert report.failed[0].id == "file.rows_readable"
    assert report.failed[0].found == "1 of 3 rows could not be parsed and are quarantined"
    assert report.failed[0].samples == ()  # it may have columns that nobody classified
    assert (report.source_rows, report.rows_read) == (3, 3)


def test_json_objects_reach_the_transform_by_their_keys(lake: Table) -> None:
    """Keys are columns of text; nested values are JSON."""
    body = b'{"order": {"id": 7}, "cents": 150}\n{"order": {"id": 8}}\n'
    sql = """
SELECT CAST(get_json_object(order, '$.id') AS int) AS id, CAST(cents AS int) / 100.00BD AS price
FROM file
"""
    report = lake.ingest(sql.strip().replace("100.00BD", "100"), body, "json")
    assert report.reason is not None
    assert report.reason.code == "TYPE_MISMATCH"
    exact = sql.strip().replace("CAST(cents AS int) / 100.00BD", "CAST(cents AS decimal(10,2))")
    assert lake.rows(lake.ingest(exact, body, "json")) == [(7, "150.00"), (8, "None")]


def test_a_damaged_file_is_not_cut_short_by_its_transform(lake: Table) -> None:
    """The whole file is read, also columns that the SQL does not name."""
    big = parquet(order_no=["7" * 900, "8" * 900], cents=pa.array([1, 2], pa.int32()))
    body = bytearray(big)
    body[40:60] = bytes(20)
    report = lake.ingest(f"SELECT 1L AS id, {CENTS} FROM file", bytes(body))
    assert report.verdict is Verdict.ERRORED
    assert report.reason is not None
    assert report.reason.code == "CORRUPT_FILE"
