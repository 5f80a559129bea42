"""Transforms over real Spark, Nessie and S3."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakegate.audit.report import AuditReport, Verdict
from lakegate.contract.model import parse
from spark_jobs.files.open import open_file
from spark_jobs.files.source import LocalFile
from tests.spark.conftest import Job, reason
from tests.spark.conftest import parquet as file_of
from tests.spark.measuring import contract_of, reading_session

pytestmark = pytest.mark.spark
COLUMNS: list[dict[str, Any]] = [
    {"name": "id", "logicalType": "integer", "required": True},
    {
        "name": "price",
        "logicalType": "number",
        "physicalType": "decimal(10,2)",
        "logicalTypeOptions": {"minimum": 0},
    },
]


@dataclass(frozen=True)
class Table:
    """A table with the columns id (required) and price (decimal), at least 0."""

    job: Job
    name: str

    def ingest(self, sql: str, body: bytes, format_: str = "parquet") -> AuditReport:
        contract = contract_of(COLUMNS, (), self.name, format=format_, transform=sql)
        return self.job.ingest(body, contract, self.name)

    def rows(self, report: AuditReport) -> list[tuple[Any, ...]]:
        found = self.job.rows(self.name, report.branch)
        return sorted((row["id"], str(row["price"])) for row in found)


@pytest.fixture
def lake(job: Job, table: str) -> Table:
    return Table(job, table)


def parquet(**columns: Any) -> bytes:
    return file_of(columns)


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


def test_a_transforms_result_can_be_rejected(lake: Table) -> None:
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
    job: Job, tmp_path: Path, sql: str, code: str, message: str
) -> None:
    """The result's columns are compared as a file's are; SQL that cannot run is a finding."""
    file = tmp_path / "file"
    file.write_bytes(FILE)
    contract = parse(contract_of(COLUMNS, transform=sql), "transform.yaml")
    spark = reading_session(job.warm_spark)
    (finding,) = open_file(spark, str(file), contract, LocalFile(file)).findings
    assert finding.code.startswith(code)
    assert message in finding.message


def test_a_finding_rejects_the_file_unwritten(lake: Table) -> None:
    """A file whose transform cannot run is rejected, and nothing is on its branch."""
    report = lake.ingest("SELECT nothing AS id, NULL AS price FROM file", FILE)
    assert (report.verdict, report.audited_hash) == (Verdict.REJECTED, "")
    assert reason(report).code == "BAD_TRANSFORM"


def test_a_failed_cast_is_reported_without_the_value(lake: Table) -> None:
    """A failed cast ends the run errored at once, without the value in the message."""
    secret = parquet(order_no=["7", "a secret"], cents=pa.array([1, 2], pa.int32()))
    report = lake.ingest(f"SELECT CAST(order_no AS bigint) AS id, {CENTS} FROM file", secret)
    assert reason(report).code == "BAD_VALUE"
    assert "CAST_INVALID_INPUT" in reason(report).message
    assert "secret" not in report.to_json()


CSV = b"Order No,cents\n007,150\n8,oops\n"
OF_CSV = """
SELECT CAST(`Order No` AS bigint) AS id,
       CAST(try_cast(cents AS int) / 100 AS decimal(10,2)) AS price
FROM file
"""


def test_cells_of_text_reach_the_transform_as_they_are(lake: Table) -> None:
    """Every cell of a text format is text, and columns may have any names.

    An unparseable row does not reach the SQL, but still rejects the file.
    """
    report = lake.ingest(OF_CSV.strip(), CSV + b"9,1,more\n", "csv")
    assert lake.rows(report) == [(7, "1.50"), (8, "None")]
    assert report.verdict is Verdict.REJECTED
    (check,) = report.failed
    assert check.id == "file.rows_readable"
    assert check.found == "1 of 3 rows could not be read"
    assert check.samples == ()  # it may have columns that nobody classified
    assert (report.source_rows, report.rows_read) == (3, 3)
    uncast = lake.ingest("SELECT 1L AS id, `Order No` AS price FROM file", CSV, "csv")
    assert reason(uncast).code == "TYPE_MISMATCH"


def test_json_objects_reach_the_transform_by_their_keys(lake: Table) -> None:
    """Keys are columns of text; nested values are JSON."""
    body = b'{"order": {"id": 7}, "cents": 150}\n{"order": {"id": 8}}\n'
    price = "CAST(cents AS decimal(10,2)) AS price"
    sql = f"SELECT CAST(get_json_object(order, '$.id') AS int) AS id, {price} FROM file"
    assert lake.rows(lake.ingest(sql, body, "json")) == [(7, "150.00"), (8, "None")]


def test_a_damaged_file_is_not_cut_short_by_its_transform(lake: Table) -> None:
    """The whole file is read, also columns that the SQL does not name."""
    big = parquet(order_no=["7" * 900, "8" * 900], cents=pa.array([1, 2], pa.int32()))
    body = bytearray(big)
    body[40:60] = bytes(20)
    report = lake.ingest(f"SELECT 1L AS id, {CENTS} FROM file", bytes(body))
    assert report.verdict is Verdict.ERRORED
    assert reason(report).code == "CORRUPT_FILE"
