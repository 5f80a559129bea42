"""Damaged files of every format end, and damage that a checksum covers is never published."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.spark.stall import cancel_when_stalled
from tests.fakes.mutations import FLAT, mutated, samples
from tests.spark.conftest import Job, Read

pytestmark = pytest.mark.spark
FILES = 60


@pytest.fixture
def avro(job_runner: Job, tmp_path: Path) -> bytes:
    """Return the flat rows as Avro."""
    rows = job_runner.warm_spark.createDataFrame(FLAT.to_pandas()).coalesce(1)
    rows.write.format("avro").save(str(tmp_path / "avro"))
    return next((tmp_path / "avro").glob("*.avro")).read_bytes()


def test_damaged_files_end(job_runner: Job, reading: Callable[..., Read], avro: bytes) -> None:
    """A damaged file is refused or read to its end; rows covered by checksums never differ."""
    samples_by_name = samples({"deflate": avro})
    ends: Counter[str] = Counter()
    with cancel_when_stalled(job_runner.warm_spark, 60):
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
                intact = reading(sample.body, sample.format, columns, sample.name)
                assert found == intact, (name, number, how)
    assert ends["read"] < ends.total() / 2, ends
