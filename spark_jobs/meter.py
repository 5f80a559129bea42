"""What a run costs, step by step."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from lakegate import times
from lakegate.report import Step
from spark_jobs import jvm


def now() -> str:
    """The time, ISO 8601 in UTC with milliseconds."""
    return times.text(datetime.now(UTC))


@dataclass(frozen=True)
class Meter:
    """When a run began, and what its steps cost."""

    spark: SparkSession
    started_at: str = field(default_factory=now)
    done: list[Step] = field(default_factory=list)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps that are over."""
        return tuple(self.done)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure one step."""
        before, start = jvm.work_done(self.spark), time.perf_counter()
        try:
            yield
        finally:
            seconds = round(time.perf_counter() - start, 3)
            spent = [n - b for n, b in zip(jvm.work_done(self.spark), before, strict=True)]
            self.done.append(Step(name, seconds, *spent))
