"""Files with damage that no checksum reveals."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakegate.limits import Limits
from lakegate.report import READABLE, Verdict
from tests.fakes.damaged_parquet import LISTS, decimals, lists, spinning, written
from tests.spark.conftest import Job, Read

pytestmark = pytest.mark.spark
Reading = Callable[..., Read]

LIST: list[Any] = [
    ("id", "integer"),
    {"name": "l", "logicalType": "array", "items": {"logicalType": "integer"}},
]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_rows_of_a_list_begin_where_the_file_says(reading: Reading, version: str) -> None:
    """Lists whose levels do not match the file's rows are refused."""
    read = lambda damage: reading(lists(damage, data_page_version=version), "parquet", LIST)  # noqa: E731
    assert read("none").rows == list(enumerate(LISTS))
    for damage in ("begins with 1", "a row more", "a row less"):
        assert read(damage).code == "CORRUPT_FILE", damage


def test_a_page_on_which_spark_spins_is_refused(reading: Reading) -> None:
    """A page without levels is refused before Spark's vectorized reader reads it."""
    assert reading(spinning(), "parquet", [("id", "integer")]).code == "CORRUPT_FILE"


def test_a_text_within_a_column_is_text(reading: Reading) -> None:
    """A text that is not UTF-8 makes its row bad, at any depth of a column."""
    rows = [[{"a": "first", "b": {"c": ["one"]}}], [{"a": "other", "b": {"c": ["wrong"]}}], None]
    inner = pa.struct({"c": pa.list_(pa.string())})
    body = written({"l": pa.array(rows, pa.list_(pa.struct({"a": pa.string(), "b": inner})))})
    texts = {"logicalType": "array", "items": {"logicalType": "string"}}
    parts = [
        {"name": "a", "logicalType": "string"},
        {"name": "b", "logicalType": "object", "properties": [{"name": "c", **texts}]},
    ]
    items = {"logicalType": "object", "properties": parts}
    columns = [{"name": "l", "logicalType": "array", "items": items}]
    assert len(reading(body, "parquet", columns).rows) == 3
    for text in (b"wrong", b"other"):
        found = reading(body.replace(text, text[:2] + b"\xff" + text[3:]), "parquet", columns)
        assert (len(found.rows), len(found.bad)) == (2, 1)


def test_what_spark_has_no_codec_for_is_not_supported(reading: Reading) -> None:
    """An intact file with an unknown codec is reported as unsupported, not as damaged."""
    body = written({"id": [1]}, compression="brotli")
    assert reading(body, "parquet", [("id", "integer")]).code == "UNREADABLE_TYPE"
    nested = written({"l": pa.array([[1]])}, compression="brotli")
    assert reading(nested, "parquet", [LIST[1]]).code == "UNREADABLE_TYPE"


def test_a_bad_row_with_a_day_that_python_has_not_is_shown(
    job_runner: Job, table: str, contract: Callable[..., str]
) -> None:
    """A bad row is shown as it stands in the file, whatever its years."""
    days = pa.array([6_634_000], pa.int32()).cast(pa.date32())
    columns = {"id": [1], "name": ["wrong"], "amount": [1.0], "day": days}
    body = written(columns).replace(b"wrong", b"wr\xffng")
    _, report = job_runner.ingest(body, contract(), table)
    assert report.reason
    assert report.reason.code == "BAD_ROWS"
    (shown,) = [check for check in report.checks if check.id == READABLE]
    assert "name: wr" in str(shown.samples)


def test_where_batches_fail_rows_are_read(
    job_runner: Job, table: str, contract: Callable[..., str]
) -> None:
    """A file on which Spark's vectorized reader fails is read by rows, and the report says so."""
    text = contract().replace("physicalType: bigint", "physicalType: 'decimal(4,0)'")
    text = text.replace("logicalType: integer", "logicalType: number")
    landed = job_runner.services.land(f"{table.replace('.', '/')}/file", decimals())
    spec = job_runner.spec(landed, text, table)
    _, report = job_runner.run(replace(spec, limits=Limits(largest_by_rows=1)))
    assert report.verdict is Verdict.PASSED, report.reason
    assert report.engine["parquet"].startswith("read by rows: Spark's vectorized reader fails")
    ids = [row["id"] for row in job_runner.rows(table, report.branch)]
    assert sorted(ids) == [Decimal(n) for n in range(8)]
