"""What Spark has done so far, by its own bookkeeping."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.jvm import each, gateway, java, java_session


@dataclass(frozen=True)
class Work:
    """What Spark has done: jobs, and what their stages read and shuffled; `stage` is the last."""

    stage: int = -1
    jobs: int = 0
    rows: int = 0
    bytes: int = 0
    shuffled: int = 0


def work_since(spark: SparkSession, before: Work) -> Work:
    """All that Spark has done, `before` being what was known of it."""
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
    """Spark's stages after one, of a Scala sequence that has the newest first."""
    for stage in each(stages):
        if stage.stageId() <= last:
            return
        yield stage


def _no_quantiles(spark: SparkSession) -> Any:
    return gateway(spark).new_array(java(spark).double, 0)
