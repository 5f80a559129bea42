"""Connect a shared run to S3, Nessie and Spark."""

from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from pyspark.sql import SparkSession

from lakegate.job.jobspec import JobSpec
from lakegate.job.shared_run import SharedRun
from spark_jobs.groups.group import ingest_group
from spark_jobs.groups.in_order import ingest_in_order
from spark_jobs.lake.aws import client
from spark_jobs.lake.nessie_branch import Branch
from spark_jobs.lake.storage import Storage
from spark_jobs.run.attempt import carry_out, wait_for_token
from spark_jobs.shared.taken_files import Means, TakenFiles
from spark_jobs.spark.iceberg import forget_rows
from spark_jobs.spark.session import another_session, started

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def connect(run: SharedRun) -> TakenFiles:
    """Return the files of a run, with clients of its region."""
    spark = started(run.name)
    return TakenFiles(run, means(spark, client("s3"), client("secretsmanager")))


def means(spark: SparkSession, s3: Any, secrets: Any) -> Means:
    """Return the means of a run with this Spark; `s3` and `secrets` are of boto3."""

    def lake(spec: JobSpec) -> Storage:
        return Storage(spec, s3, secrets)

    return Means(
        lake=lake,
        branch=Branch,
        token=lambda spec: wait_for_token(spec, lake(spec).nessie_token),
        together=partial(ingest_group, spark),
        in_order=_afresh(spark, partial(ingest_in_order, spark)),
        alone=_afresh(spark, partial(carry_out, open_session=partial(another_session, spark))),
    )


def _afresh(spark: SparkSession, ingest: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """Return it, but that it first forgets what Spark read of the files before."""

    def carried_out(*given: _Given.args, **named: _Given.kwargs) -> _Made:
        forget_rows(spark)
        return ingest(*given, **named)

    return carried_out
