"""Measure what each step of a run costs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile

from pyspark.sql import SparkSession

from lakegate import times
from lakegate.audit.report import Step
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
    no_quantiles = gateway(spark).new_array(java(spark).double, 0)
    stages = store.stageList(None, False, False, no_quantiles, None)  # the newest first
    new = list(takewhile(lambda stage: stage.stageId() > before.stage, items_of(stages)))
    jobs = store.jobsList(None)  # the newest first; of a long session not all are there
    return Work(
        stage=max([before.stage, *(stage.stageId() for stage in new)]),
        jobs=jobs.head().jobId() + 1 if jobs.nonEmpty() else 0,
        rows=before.rows + sum(stage.inputRecords() for stage in new),
        bytes=before.bytes + sum(stage.inputBytes() for stage in new),
        shuffled=before.shuffled + sum(stage.shuffleWriteBytes() for stage in new),
    )


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
