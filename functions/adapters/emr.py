"""Job runs of EMR Serverless."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.adapters.emr_run_policy import run_policy
from functions.settings import Settings
from lakegate.errors import LakegateError, Permanent, Transient
from lakegate.jobspec import AVRO, MAIN, PACKAGES, JobSpec
from lakegate.landing import run_name

# A job run of EMR Serverless, as a value.


class RunState(StrEnum):
    """EMR Serverless's states of a job run (user guide, "Job run states")."""

    SUBMITTED = "SUBMITTED"
    QUEUED = "QUEUED"
    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    CANCELLING = "CANCELLING"
    CANCELLED = "CANCELLED"

    @property
    def terminal(self) -> bool:
        """Whether the run will not change its state again."""
        return self in (RunState.SUCCESS, RunState.FAILED, RunState.CANCELLED)


@dataclass(frozen=True)
class JobRun:
    """One job run; `details` is EMR's own word on its state, at most 256 characters."""

    id: str
    name: str
    state: RunState
    details: str = ""

    @property
    def has_ended(self) -> bool:
        """Return whether the run will not change its state again."""
        return self.state.terminal


# What one job run is submitted with: its code, Spark's settings and where its log goes.
#
# Everything is said in the job run itself: an application's own settings are nobody's to rely on.
# GetJobRun shows all of it to whoever may ask, so no secret is here.

# Where EMR has it, also with Spark 4 ("Using Apache Iceberg with EMR Serverless").
ICEBERG_JAR = "/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar"
_STREAMS = {"SPARK_DRIVER": ["STDERR", "STDOUT"], "SPARK_EXECUTOR": ["STDERR", "STDOUT"]}


def spark_submit(spec: JobSpec, settings: Settings) -> dict[str, Any]:
    """The job driver of StartJobRun: entry point, the spec as its one argument, parameters."""
    code = settings.job_code
    flags = [f"--py-files {code}/{PACKAGES}"]
    flags += [f"--conf {name}={value}" for name, value in spark_settings(settings).items()]
    return {
        "entryPoint": f"{code}/{MAIN}",
        "entryPointArguments": [spec.to_argument()],
        "sparkSubmitParameters": " ".join(flags),
    }


def spark_settings(settings: Settings) -> dict[str, str]:
    """What Spark must be told before it starts; the run itself tells it the rest.

    Both s3:// and s3a:// are Hadoop's S3A there, as on one machine (EMR Release Guide, "Migration
    Guide: EMRFS to S3A Filesystem"), with the run's own credentials.
    """
    cores, memory = str(settings.job_worker_cores), settings.job_worker_memory
    return {
        "spark.driver.cores": cores,
        "spark.driver.memory": memory,
        "spark.executor.cores": cores,
        "spark.executor.memory": memory,
        # A file that asks for too much memory fails its run, with that reason, and no executor.
        "spark.executor.killOnFatalError.depth": "0",
        # A task that spins heeds no cancel: its executor is killed, and another one started.
        "spark.task.reaper.enabled": "true",
        "spark.task.reaper.killTimeout": "60s",
        "spark.dynamicAllocation.initialExecutors": "1",  # most files are small
        "spark.dynamicAllocation.maxExecutors": str(settings.job_max_executors),
        "spark.jars": f"{ICEBERG_JAR},{settings.job_code}/{AVRO}",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        # Not Glue: the one catalog is Nessie.
        "spark.sql.catalogImplementation": "in-memory",
        # Without it Spark believes a damaged page.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    }


def monitoring(settings: Settings) -> dict[str, Any]:
    """Where the run's log goes: EMR's own storage, which its Spark UI reads, and a log group."""
    own = {"managedPersistenceMonitoringConfiguration": {"enabled": True}}
    if not settings.job_log_group:
        return own
    group = {"enabled": True, "logGroupName": settings.job_log_group, "logTypes": _STREAMS}
    return {**own, "cloudWatchLoggingConfiguration": group}


_PERMANENT = ("ValidationException", "AccessDeniedException")


class UnknownRun(LakegateError):
    """EMR Serverless does not know this job run."""


class Jobs:
    """The EMR Serverless application that runs our jobs."""

    def __init__(self, client: Any, settings: Settings) -> None:
        """`client` is boto3's `emr-serverless` client."""
        self._client = client
        self._settings = settings

    def start(self, spec: JobSpec) -> str:
        """Start the job run of one attempt, or find it started already; returns its id.

        Raises Permanent when EMR refuses the request itself, Transient otherwise: also where there
        is no such application, which is a fault of the deployment and not of the file.
        """
        name = run_name(spec.ingestion, spec.attempt)
        with _translated():
            run = self._client.start_job_run(
                applicationId=self._settings.emr_application_id,
                executionRoleArn=self._settings.emr_role_arn,
                clientToken=name,
                name=name,
                executionIamPolicy={"policy": run_policy(spec, self._settings)},
                jobDriver={"sparkSubmit": spark_submit(spec, self._settings)},
                configurationOverrides={"monitoringConfiguration": monitoring(self._settings)},
                executionTimeoutMinutes=self._settings.job_timeout_minutes,
                retryPolicy={"maxAttempts": self._settings.emr_attempts},
                tags={"lakegate:table": spec.table},
            )
        return str(run["jobRunId"])

    def get(self, run: str) -> JobRun:
        """The job run as it is now. Raises UnknownRun."""
        return _run(run, self._described(run))

    def runs(self, since: str = "") -> list[JobRun]:
        """Every job run of the application that was created since that time (ISO 8601)."""
        given: dict[str, Any] = {"applicationId": self._settings.emr_application_id}
        if since:
            given["createdAtAfter"] = datetime.fromisoformat(since)
        with _translated():
            pages = self._client.get_paginator("list_job_runs").paginate(**given)
            return [_run(found["id"], found) for page in pages for found in page["jobRuns"]]

    def spec(self, run: str) -> JobSpec:
        """What a job run was told. Raises UnknownRun, or Permanent where it is no run of ours."""
        driver = self._described(run).get("jobDriver", {})
        try:
            return JobSpec.from_argument(*driver["sparkSubmit"]["entryPointArguments"])
        except (KeyError, TypeError, ValueError) as error:
            message = f"job run {run} was told something else than our jobs are: {error!r}"
            raise Permanent("BAD_JOB_SPEC", message) from error

    def _described(self, run: str) -> dict[str, Any]:
        application = self._settings.emr_application_id
        with _translated():
            try:
                found = self._client.get_job_run(applicationId=application, jobRunId=run)
            except self._client.exceptions.ResourceNotFoundException as error:
                raise UnknownRun("UNKNOWN_JOB_RUN", str(error)) from error
        return dict(found["jobRun"])


def _run(run: str, found: Mapping[str, Any]) -> JobRun:
    return JobRun(
        id=run,
        name=found.get("name", ""),
        state=RunState(found["state"]),
        details=found.get("stateDetails", ""),
    )


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in _PERMANENT:
            raise Permanent("JOB_REFUSED", f"EMR Serverless refused: {error}") from error
        raise Transient("JOBS_UNAVAILABLE", f"EMR Serverless refused: {error}") from error
    except BotoCoreError as error:
        raise Transient("JOBS_UNAVAILABLE", f"EMR Serverless did not answer: {error}") from error
