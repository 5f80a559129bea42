"""What a run costs, step by step."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from lakegate import times
from lakegate.report import Step
from spark_jobs import work


def now() -> str:
    """The time, ISO 8601 in UTC with milliseconds."""
    return times.text(datetime.now(UTC))


class Meter:
    """When a run began, and what its steps cost."""

    def __init__(self, spark: SparkSession) -> None:
        self.started_at = now()
        self.steps: tuple[Step, ...] = ()
        self._spark = spark
        self._work = work.work_since(spark, work.Work())

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure one step."""
        start = time.perf_counter()
        yield
        seconds = round(time.perf_counter() - start, 3)
        before, self._work = self._work, work.work_since(self._spark, self._work)
        done = self._work
        self.steps += (
            Step(
                name,
                seconds,
                done.jobs - before.jobs,
                done.rows - before.rows,
                done.bytes - before.bytes,
                done.shuffled - before.shuffled,
            ),
        )
