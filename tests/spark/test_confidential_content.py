"""A report quotes nothing of a file whose contract has confidential columns."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from infra.local.contract_test import audit
from lakegate.audit.report import Verdict
from lakegate.contract.model import parse
from tests.spark.conftest import Job, orc_file, parquet
from tests.unit.contract.contract_texts import contract_text

pytestmark = pytest.mark.spark

MOMENT = pa.array([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("ns", "UTC"))


ID = pa.array([1], pa.int64())
NESTED = pa.StructArray.from_arrays([MOMENT], ["JaneDoe"])
ADD = "- {property: extraColumns, value: add}\n"
SELECT = "- {property: transform, value: \"SELECT nobody AS id, '' AS word FROM file\"}\n"
# A condition that fails with the value that it reads.
RAISED = """\
- type: custom
  engine: lakegate
  implementation: {check: rowExpression, expression: raise_error(word) IS NULL}
"""


@pytest.mark.parametrize(
    ("format_", "body", "settings", "quality"),
    [
        ("csv", b"JaneDoe,7\n8,9\n", "", ""),
        ("json", b"JaneDoe\n", "", ""),
        ("json", b"""{"id": 1, "word": "a", "JaneDoe'\\"": 1}\n""", ADD, ""),
        ("csv", b"id,JaneDoe\n1,7\n", "", ""),
        ("parquet", parquet({"id": ID, "word": NESTED}), "", ""),
        ("parquet", parquet({"id": ID, "word": pa.array(["JaneDoe"])}), "", RAISED),
        ("parquet", parquet({"id": ID, "JaneDoe": ID}), SELECT, ""),
        ("orc", orc_file({"id": ID, "JaneDoe": MOMENT}), "", ""),
    ],
    ids=["a lost header", "no JSON", "quotes", "a column", "times", "a check", "transform", "ORC"],
)
def test_file_content_is_reported_for_open_contracts_only(
    job: Job, tmp_path: Path, format_: str, body: bytes, settings: str, quality: str
) -> None:
    """Names and cells of the file are in the report only if no column is confidential."""
    file = tmp_path / "file"
    file.write_bytes(body)
    for secrecy, is_shown in (("public", True), ("confidential", False)):
        text = contract_text(
            f"- {{name: word, logicalType: string, classification: {secrecy}}}",
            quality=quality,
            settings=f"- {{property: format, value: {format_}}}\n{settings}",
        )
        report = audit(job.warm_spark, parse(text, "a.yaml"), file)
        assert report.verdict in (Verdict.REJECTED, Verdict.ERRORED)
        assert ("JaneDoe" in report.to_json()) is is_shown
