"""Start and read job runs of EMR Serverless."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from math import ceil
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.adapters.emr_run_policy import run_policy, shared_run_policy
from functions.model.budget import Use
from functions.settings import Settings
from lakegate.errors import LakegateError, Permanent, Transient
from lakegate.jobspec import AVRO, LIBRARIES, MAIN, PACKAGES, JobSpec
from lakegate.refusals import unavailable
from lakegate.shared_run import SharedRun


class RunState(StrEnum):
    """The states of a job run in EMR Serverless (user guide, "Job run states")."""

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
        """Return whether the state is final."""
        return self in (RunState.SUCCESS, RunState.FAILED, RunState.CANCELLED)


@dataclass(frozen=True)
class JobRun:
    """A job run; `details` is EMR's explanation of its state, at most 256 characters.

    `use` is what was billed for it, None as long as that is not known.
    """

    id: str
    name: str
    state: RunState
    details: str = ""
    use: Use | None = field(default=None, compare=False)  # lists do not tell it

    @property
    def has_ended(self) -> bool:
        """Return whether the run will not change its state again."""
        return self.state.terminal


# Each job run carries all of its configuration, because the application's own defaults may change.
# GetJobRun shows it to everybody with read access, so it contains no secret.

# Where driver and executors unpack the libraries, in the directory that they start in.
_UNPACKED = "libraries"
_STREAMS = {"SPARK_DRIVER": ["STDERR", "STDOUT"], "SPARK_EXECUTOR": ["STDERR", "STDOUT"]}


def spark_submit(told: JobSpec | SharedRun, settings: Settings) -> dict[str, Any]:
    """Return the job driver of StartJobRun: entry point, the run's input, Spark's settings."""
    code, size = settings.job_code, _size(told, settings)
    flags = [f"--py-files {code}/{PACKAGES}"]
    flags += [f"--conf {name}={value}" for name, value in _spark_settings(size, settings).items()]
    return {
        "entryPoint": f"{code}/{MAIN}",
        "entryPointArguments": [told.to_argument()],
        "sparkSubmitParameters": " ".join(flags),
    }


def most_use(told: JobSpec | SharedRun, settings: Settings) -> Use:
    """Return the most that a job run can use: all of its workers up to its timeout."""
    return _size(told, settings).use(settings.job_timeout_minutes / 60)


def _spark_settings(size: "WorkerSize", settings: Settings) -> dict[str, str]:
    """Return the Spark settings that must be known at start; the job sets the others.

    Iceberg is on the default class path of EMR's Spark releases; its path differs between them, so
    none is named. On EMR, s3:// and s3a:// are both Hadoop's S3A, as in a local run (EMR Release
    Guide, "Migration Guide: EMRFS to S3A Filesystem"), with the job role's credentials.
    """
    return {
        **_workers(size),
        **_variables(settings),
        # A file that needs too much memory fails its job run with that reason; executors survive.
        "spark.executor.killOnFatalError.depth": "0",
        # A busy loop ignores cancellation: its executor is killed and replaced.
        "spark.task.reaper.enabled": "true",
        "spark.task.reaper.killTimeout": "60s",
        "spark.jars": ",".join(filter(None, (f"{settings.job_code}/{AVRO}", settings.job_jars))),
        # Spark unpacks it before Python starts, and appends this path to its own (adr/0027).
        "spark.archives": f"{settings.job_code}/{LIBRARIES}#{_UNPACKED}",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        # The only catalog is Nessie, not Glue.
        "spark.sql.catalogImplementation": "in-memory",
        # Without it Spark accepts a corrupt page.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    }


def _variables(settings: Settings) -> dict[str, str]:
    """Return the settings of driver's and executors' environment: what the image has, none knows.

    AWS's client for Python takes the region from one variable, that for Java from the other.
    """
    wanted = {
        "PYTHONPATH": f"./{_UNPACKED}",
        "AWS_REGION": settings.region,
        "AWS_DEFAULT_REGION": settings.region,
    }
    places = ("spark.emr-serverless.driverEnv", "spark.executorEnv")
    return {f"{place}.{name}": text for place in places for name, text in wanted.items()}


@dataclass(frozen=True)
class WorkerSize:
    """The size of a run's driver and of each of its executors.

    It has vCPUs, memory of the JVM, and memory of Python beside it: "" for Spark's own default.
    """

    cores: int
    memory: str
    executors: int
    beside: str = ""

    def use(self, hours: float) -> Use:
        """Return what driver and all executors use in so many hours, without more storage."""
        workers = 1 + self.executors
        heap = _gigabytes(self.memory)
        memory = heap + (_gigabytes(self.beside) if self.beside else heap * _BESIDE)
        return Use(workers * self.cores * hours, workers * ceil(memory) * hours)


_BESIDE = 0.1  # of the JVM's memory is reserved beside it (Spark, "spark.driver.memoryOverhead")


def _gigabytes(memory: str) -> float:
    """Return an amount of memory as Spark writes it (`14g`, `512m`) in gigabytes."""
    return float(memory[:-1]) / {"g": 1, "m": 1024}[memory[-1].lower()]


# Four GB a worker, of the two to eight that EMR Serverless gives to one vCPU. Half is Python's,
# which decodes the files of a group in the driver (spark_jobs/groups/group_arrow.py).
SMALL = WorkerSize(cores=1, memory="2g", executors=1, beside="2g")
_SHARED_EXECUTORS = 4


def _size(told: JobSpec | SharedRun, settings: Settings) -> WorkerSize:
    """Return the size of a run's workers; small ones are enough for a small spec.

    A file of a group is one task of seconds, so a group of 100 keeps a few small executors busy.
    More of them would idle while Nessie commits, and each is charged for at least a minute. Spark
    releases idle ones after a minute, so a run that waits is charged for its driver alone. Large
    files, which need more memory, have runs of their own.
    """
    if isinstance(told, SharedRun):
        return replace(SMALL, executors=min(_SHARED_EXECUTORS, settings.job_max_executors))
    if told.small:
        return SMALL
    return WorkerSize(
        settings.job_worker_cores, settings.job_worker_memory, settings.job_max_executors
    )


def _workers(size: WorkerSize) -> dict[str, str]:
    """Return the settings of the workers.

    Spark begins with the largest of three numbers of executors. EMR Serverless sets one of them,
    `spark.executor.instances`, to 3 (User Guide, "Spark job properties").
    """
    workers = ("driver", "executor") if size.beside else ()
    return {
        **{f"spark.{each}.memoryOverhead": size.beside for each in workers},
        "spark.driver.cores": str(size.cores),
        "spark.driver.memory": size.memory,
        "spark.executor.cores": str(size.cores),
        "spark.executor.memory": size.memory,
        "spark.executor.instances": "1",
        "spark.dynamicAllocation.initialExecutors": "1",
        "spark.dynamicAllocation.maxExecutors": str(size.executors),
    }


def monitoring(settings: Settings) -> dict[str, Any]:
    """Return where logs go: EMR's own storage, which its Spark UI reads, and a log group."""
    own = {"managedPersistenceMonitoringConfiguration": {"enabled": True}}
    if not settings.job_log_group:
        return own
    group = {"enabled": True, "logGroupName": settings.job_log_group, "logTypes": _STREAMS}
    return {**own, "cloudWatchLoggingConfiguration": group}


class UnknownRun(LakegateError):
    """EMR Serverless does not know this job run."""


class Jobs:
    """The EMR Serverless applications that run the jobs; shared runs have their own (adr/0073).

    A run's id does not tell its application, so each is asked until one knows the run.
    """

    def __init__(self, client: Any, settings: Settings) -> None:
        """Use boto3's `emr-serverless` client."""
        self._client = client
        self._settings = settings

    def start(self, told: JobSpec | SharedRun) -> str:
        """Start a job run and return its id; return the existing one of its name if started.

        The policy of a shared run must have room for the tables that it is kept apart from
        (`widened`). Raises Permanent when EMR refuses the request itself, Transient otherwise. A
        missing application or right is Transient: the deployment is at fault, not the file.
        """
        with _translated():
            run = self._client.start_job_run(
                applicationId=_application(told, self._settings),
                executionRoleArn=self._settings.emr_role_arn,
                clientToken=told.name,
                name=told.name,
                jobDriver={"sparkSubmit": spark_submit(told, self._settings)},
                configurationOverrides={"monitoringConfiguration": monitoring(self._settings)},
                retryPolicy={"maxAttempts": self._settings.emr_attempts},
                **_bounds(told, self._settings),
            )
        return str(run["jobRunId"])

    def get(self, run: str) -> JobRun:
        """Return the current state of a job run. Raises UnknownRun."""
        found = self.describe(run)
        return replace(_run(run, found), use=_use(found))

    def runs(self, since: str = "") -> list[JobRun]:
        """Return every job run of the applications created since a time (ISO 8601)."""
        given = {"createdAtAfter": datetime.fromisoformat(since)} if since else {}
        listed = self._client.get_paginator("list_job_runs").paginate
        with _translated():
            return [
                _run(found["id"], found)
                for application in self._settings.emr_applications
                for page in listed(applicationId=application, **given)
                for found in page["jobRuns"]
            ]

    def spec(self, run: str) -> JobSpec:
        """Return a job run's spec. Raises UnknownRun, or Permanent BAD_JOB_SPEC."""
        driver = self.describe(run).get("jobDriver", {})
        try:
            return JobSpec.from_argument(*driver["sparkSubmit"]["entryPointArguments"])
        except (KeyError, TypeError, ValueError) as error:
            message = (
                f"job run {run} was not started by Lakegate: its argument is invalid: {error!r}"
            )
            raise Permanent("BAD_JOB_SPEC", message) from error

    def describe(self, run: str) -> dict[str, Any]:
        """Return a job run as EMR Serverless describes it: times, bill, … Raises UnknownRun."""
        for application in self._settings.emr_applications:
            with _translated(), suppress(self._client.exceptions.ResourceNotFoundException):
                found = self._client.get_job_run(applicationId=application, jobRunId=run)
                return dict(found["jobRun"])
        raise UnknownRun("UNKNOWN_JOB_RUN", f"EMR Serverless does not know job run {run}")


def _application(told: JobSpec | SharedRun, settings: Settings) -> str:
    """Return the application that a job run starts in: large files never hold small ones."""
    shares = isinstance(told, SharedRun)
    return settings.emr_shared_application_id if shares else settings.emr_application_id


def _bounds(told: JobSpec | SharedRun, settings: Settings) -> dict[str, Any]:
    """Return what a job run may do and for how long, and the tag by which its cost is told."""
    if isinstance(told, SharedRun):
        policy, minutes = shared_run_policy(told, settings), told.timeout_minutes
        tags = {"lakegate:shared": "yes"}
    else:
        policy, minutes = run_policy(told, settings), settings.job_timeout_minutes
        tags = {"lakegate:table": told.table}
    return {
        "executionIamPolicy": {"policy": policy},
        "executionTimeoutMinutes": minutes,
        "tags": tags,
    }


def _run(run: str, found: Mapping[str, Any]) -> JobRun:
    return JobRun(
        id=run,
        name=found.get("name", ""),
        state=RunState(found["state"]),
        details=found.get("stateDetails", ""),
    )


def _use(found: Mapping[str, Any]) -> Use | None:
    """Return what was billed for a run, nothing if it never began to execute.

    EMR Serverless tells it some seconds after the end; until then there is none, or zeros.
    """
    billed = found.get("billedResourceUtilization") or {}
    if billed.get("vCPUHour"):
        names = ("vCPUHour", "memoryGBHour", "storageGBHour")
        return Use(*(float(billed.get(name) or 0) for name in names))
    return None if found.get("startedAt") else Use()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code == "ValidationException":
            raise Permanent("JOB_REFUSED", f"EMR Serverless refused: {error}") from error
        message = f"EMR Serverless refused: {error}"
        raise unavailable(error, "JOBS_UNAVAILABLE", message) from error
    except BotoCoreError as error:
        raise Transient("JOBS_UNAVAILABLE", f"EMR Serverless did not answer: {error}") from error
