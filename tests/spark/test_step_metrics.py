"""Spark's work is counted by its own bookkeeping, even after many jobs."""

import pytest

from spark_jobs.spark.step_metrics import Work, work_since
from tests.spark.conftest import Job

pytestmark = pytest.mark.spark


def test_jobs_are_counted_that_spark_remembers_no_more(job_runner: Job) -> None:
    """Jobs that Spark no longer keeps in memory are counted once."""
    spark = job_runner.warm_spark
    before = work_since(spark, Work())
    for _ in range(30):
        spark.range(1).collect()
    assert work_since(spark, before).jobs - before.jobs == 30
