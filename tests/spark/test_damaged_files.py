"""Damaged files of every format end, also where no checksum reveals the damage."""

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakegate.audit.report import READABLE
from spark_jobs.spark.stall import cancel_when_stalled
from tests.fakes.damaged_parquet import LISTS, decimals, lists, spinning, written
from tests.fakes.mutations import FLAT, mutated, samples
from tests.spark.conftest import Job, Read, reason

pytestmark = pytest.mark.spark
Reading = Callable[..., Read]

FILES = 60
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
    """A page without levels is refused, and ends no job."""
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


def test_a_codec_that_spark_has_not_is_not_supported(reading: Reading) -> None:
    """An intact file with an unknown codec is reported as unsupported, not as damaged."""
    body = written({"id": [1]}, compression="brotli")
    assert reading(body, "parquet", [("id", "integer")]).code == "UNREADABLE_TYPE"
    nested = written({"l": pa.array([[1]])}, compression="brotli")
    assert reading(nested, "parquet", [LIST[1]]).code == "UNREADABLE_TYPE"


def test_a_bad_row_with_a_day_that_python_has_not_is_shown(
    job: Job, table: str, contract: Callable[..., str]
) -> None:
    """A bad row is shown as it stands in the file, whatever its years."""
    days = pa.array([6_634_000], pa.int32()).cast(pa.date32())
    columns = {"id": [1], "name": ["wrong"], "amount": [1.0], "day": days}
    body = written(columns).replace(b"wrong", b"wr\xffng")
    report = job.ingest(body, contract(), table)
    assert reason(report).code == "BAD_ROWS"
    (shown,) = [check for check in report.checks if check.id == READABLE]
    (cell,) = shown.samples
    assert (cell["column"], cell["reason"]) == ("name", "not text in UTF-8")
    assert str(cell["value"]).startswith("wr")


def test_decimals_of_few_digits_are_read_however_they_are_stored(reading: Reading) -> None:
    """Decimals on which Spark's vectorized reader would fail are read by rows."""
    found = reading(decimals(), "parquet", [("id", "number", "decimal(4,0)")])
    assert sorted(found.rows) == [(Decimal(n),) for n in range(8)]


@pytest.fixture
def avro(job: Job, tmp_path: Path) -> bytes:
    """Return the flat rows as Avro."""
    rows = job.warm_spark.createDataFrame(FLAT.to_pandas()).coalesce(1)
    rows.write.format("avro").save(str(tmp_path / "avro"))
    return next((tmp_path / "avro").glob("*.avro")).read_bytes()


def test_damaged_files_end(job: Job, reading: Reading, avro: bytes) -> None:
    """A damaged file is refused or read to its end; rows covered by checksums never differ."""
    samples_by_name = samples({"deflate": avro})
    ends, intact = Counter[str](), dict[str, Read]()
    with cancel_when_stalled(job.warm_spark, 60):
        for number in range(FILES):
            name = [*samples_by_name][number % len(samples_by_name)]
            sample = samples_by_name[name]
            others = [each for each in samples_by_name.values() if each.format == sample.format]
            how, body = mutated(sample, others, number)
            columns: list[Any] = list(sample.columns)
            found = reading(body, sample.format, columns, sample.name)
            ends[found.code or "read"] += 1
            assert found.code not in ("JOB_FAULT", "TIMED_OUT"), (name, number, how)
            if sample.checked and not (found.code or found.bad):
                if name not in intact:
                    intact[name] = reading(sample.body, sample.format, columns, sample.name)
                assert found == intact[name], (name, number, how)
    assert ends["read"] < ends.total() / 2, ends
