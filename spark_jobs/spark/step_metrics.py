"""Measure what each step of a run costs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from lakegate import times
from lakegate.report import Step
from spark_jobs.spark.jvm import gateway, items_of, java, java_session


@dataclass(frozen=True)
class Work:
    """Spark's work so far: jobs, and what their stages read and shuffled, up to `stage`."""

    stage: int = -1
    jobs: int = 0
    rows: int = 0
    bytes: int = 0
    shuffled: int = 0


def work_since(spark: SparkSession, before: Work) -> Work:
    """Return all work of Spark, given the work `before`."""
    context = java_session(spark).sparkContext()
    context.listenerBus().waitUntilEmpty()
    store = context.statusStore()
    stages = store.stageList(None, False, False, _no_quantiles(spark), None)
    new = list(_newest(stages, before.stage))
    jobs = store.jobsList(None)  # the newest first; of a long session not all are there
    return Work(
        stage=max([before.stage, *(stage.stageId() for stage in new)]),
        jobs=jobs.head().jobId() + 1 if jobs.nonEmpty() else 0,
        rows=before.rows + sum(stage.inputRecords() for stage in new),
        bytes=before.bytes + sum(stage.inputBytes() for stage in new),
        shuffled=before.shuffled + sum(stage.shuffleWriteBytes() for stage in new),
    )


def _newest(stages: Any, last: int) -> Iterator[Any]:
    """Yield Spark's stages after a given one, from a Scala sequence that has the newest first."""
    for stage in items_of(stages):
        if stage.stageId() <= last:
            return
        yield stage


def _no_quantiles(spark: SparkSession) -> Any:
    return gateway(spark).new_array(java(spark).double, 0)


def now() -> str:
    """Return the time, ISO 8601 in UTC with milliseconds."""
    return times.text(datetime.now(UTC))


class Meter:
    """The start of a run, and the cost of its steps."""

    def __init__(self, spark: SparkSession) -> None:
        self.started_at = now()
        self.steps: tuple[Step, ...] = ()
        self._spark = spark
        self._work = work_since(spark, Work())

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure one step."""
        start = time.perf_counter()
        yield
        seconds = round(time.perf_counter() - start, 3)
        before, self._work = self._work, work_since(self._spark, self._work)
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
