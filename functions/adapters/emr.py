"""Start and read job runs of EMR Serverless."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.settings import Settings
from lakegate.batch import folder, tables_of
from lakegate.errors import LakegateError, Permanent, Transient
from lakegate.jobspec import AVRO, MAIN, PACKAGES, JobSpec
from lakegate.landing import run_name

# The policy that narrows the job's role to one ingestion.
#
# A job run may do what both its role and this policy allow (EMR Serverless User Guide, "Execution
# IAM policy"). The text has at most 2,048 characters (API reference, JobRunExecutionIamPolicy),
# so it does not repeat what the role gives to every run, such as the secret and the log group.

MOST = 2048
_LONGEST_PATH, _LONGEST_FOLDER = 120, 300
# The API accepts no other characters. How IAM counts these is undocumented.
_UNWRITABLE = re.compile(r"[^\x20-\x7e\xa0-\xff]+")
_READ = ("s3:GetObject", "s3:GetObjectVersion")
_WRITE = ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload")
_ALIKE = ("s3:ListBucket", "secretsmanager:GetSecretValue", "logs:*")


def run_policy(spec: JobSpec, settings: Settings) -> str:
    """Return the policy of one job run, as JSON of at most MOST characters.

    The run may read its landed object, the contract, baselines and the job's code. It may write
    keys that contain the ingestion's id (reports, staged copies, results, quarantine) and its
    table; a re-audit only reads the table. It reads all tables only if its contract requires it. A
    name that is too long, or has characters that a policy cannot have, is widened by `*`. A batch
    with too many tables gets their namespaces, or all tables.
    """
    if spec.parts:
        return next(text for text in _of_batch(spec, settings) if len(text) <= MOST)
    without = _text(spec, settings, (), _tables([spec.table]))
    landed = () if spec.reaudit_base else _landed(spec, settings, MOST - len(without))
    return _text(spec, settings, landed, _tables([spec.table]))


def _of_batch(spec: JobSpec, settings: Settings) -> Iterator[str]:
    """Yield the possible policies of a batch, narrowest first; it reads its whole folder."""
    bucket = f"{_s3(settings)}{spec.landed.bucket}/"
    landed = [f"{bucket}{literal(folder(spec.landed.key), _LONGEST_FOLDER)}*"]
    names = tables_of(spec.parts)
    spaces = dict.fromkeys(name.partition(".")[0] for name in names)
    for places in (_tables(names), [f"warehouse/{space}/*" for space in spaces], ["warehouse/*"]):
        yield _text(spec, settings, landed, places)


def _tables(names: Iterable[str]) -> list[str]:
    """Return the locations of tables; Nessie creates each in a folder `<table>_<uuid>`.

    A table's name has no hyphen, so such a pattern matches no other table.
    """
    places = (literal(f"warehouse/{n.replace('.', '/')}", _LONGEST_PATH) for n in names)
    return [f"{place}{end}" for place in places for end in ("_????????-*", "/*")]


def _text(spec: JobSpec, settings: Settings, landed: Sequence[str], tables: Sequence[str]) -> str:
    lake = f"{_s3(settings)}{spec.lake_bucket}/"
    release = settings.job_code.removeprefix(f"s3://{spec.lake_bucket}/")
    names = (spec.contract_key, f"baselines/{spec.table}.json")
    read = [literal(name, _LONGEST_PATH) for name in names]
    if spec.parts:
        read = ["contracts/*", "baselines/*"]
    read += [f"{literal(release)}/*"]
    read += ["warehouse/*"] * spec.reads_others
    written = [f"*{spec.ingestion}*"]
    (read if spec.reaudit_base else written).extend(tables)
    statements = (
        _allow(_READ, [*landed, *(lake + path for path in read)]),
        _allow(_WRITE, [lake + path for path in written]),
        _allow(_ALIKE, ["*"]),
    )
    return _compact({"Version": "2012-10-17", "Statement": statements})


def _allow(actions: Sequence[str], resources: Sequence[str]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": actions, "Resource": resources}


def _landed(spec: JobSpec, settings: Settings, room: int) -> Sequence[str]:
    """Return the landed object and a control file beside it, within `room` characters of JSON."""
    key, bucket = spec.landed.key, f"{_s3(settings)}{spec.landed.bucket}/"
    both = (bucket + literal(key), f"{bucket}{literal(key)}.control.*")
    if len(_compact(both)) <= room:
        return both
    return (bucket + literal(key, room - len(_compact([bucket]))),)


def literal(text: str, most: int = 10_000) -> str:
    """Return an IAM pattern for this exact text, in at most `most` characters of JSON.

    Wildcards and characters that begin a variable are escaped (IAM User Guide, "Policy variables:
    special characters"). Characters that cannot be written, and what exceeds the limit, become `*`.
    """
    pattern, size = "", 0
    for part in re.findall(rf"{_UNWRITABLE.pattern}|.", text):
        more = _escaped(part)
        size += len(_compact(more)) - 2
        if size > most - (more != "*"):
            return f"{pattern.rstrip('*')}*"
        pattern += more
    return pattern


def _escaped(part: str) -> str:
    if part in ("*", "?", "$"):
        return f"${{{part}}}"
    return "*" if _UNWRITABLE.match(part) else part


def _s3(settings: Settings) -> str:
    return f"arn:{settings.emr_role_arn.split(':')[1]}:s3:::"


def _compact(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


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
    """A job run; `details` is EMR's explanation of its state, at most 256 characters."""

    id: str
    name: str
    state: RunState
    details: str = ""

    @property
    def has_ended(self) -> bool:
        """Return whether the run will not change its state again."""
        return self.state.terminal


# Each job run carries all of its configuration, because the application's own defaults may change.
# GetJobRun shows it to everybody with read access, so it contains no secret.

# The path on EMR, also with Spark 4 ("Using Apache Iceberg with EMR Serverless").
ICEBERG_JAR = "/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar"
_STREAMS = {"SPARK_DRIVER": ["STDERR", "STDOUT"], "SPARK_EXECUTOR": ["STDERR", "STDOUT"]}


def spark_submit(spec: JobSpec, settings: Settings) -> dict[str, Any]:
    """Return the job driver of StartJobRun: entry point, job spec and Spark parameters."""
    code = settings.job_code
    flags = [f"--py-files {code}/{PACKAGES}"]
    flags += [f"--conf {name}={value}" for name, value in spark_settings(settings).items()]
    return {
        "entryPoint": f"{code}/{MAIN}",
        "entryPointArguments": [spec.to_argument()],
        "sparkSubmitParameters": " ".join(flags),
    }


def spark_settings(settings: Settings) -> dict[str, str]:
    """Return the Spark settings that must be known at start; the job sets the others.

    On EMR, s3:// and s3a:// are both Hadoop's S3A, as in a local run (EMR Release Guide, "Migration
    Guide: EMRFS to S3A Filesystem"), with the job role's credentials.
    """
    cores, memory = str(settings.job_worker_cores), settings.job_worker_memory
    return {
        "spark.driver.cores": cores,
        "spark.driver.memory": memory,
        "spark.executor.cores": cores,
        "spark.executor.memory": memory,
        # A file that needs too much memory fails its job run with that reason; executors survive.
        "spark.executor.killOnFatalError.depth": "0",
        # A busy loop ignores cancellation: its executor is killed and replaced.
        "spark.task.reaper.enabled": "true",
        "spark.task.reaper.killTimeout": "60s",
        "spark.dynamicAllocation.initialExecutors": "1",  # most files are small
        "spark.dynamicAllocation.maxExecutors": str(settings.job_max_executors),
        "spark.jars": f"{ICEBERG_JAR},{settings.job_code}/{AVRO}",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        # The only catalog is Nessie, not Glue.
        "spark.sql.catalogImplementation": "in-memory",
        # Without it Spark accepts a corrupt page.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    }


def monitoring(settings: Settings) -> dict[str, Any]:
    """Return where logs go: EMR's own storage, which its Spark UI reads, and a log group."""
    own = {"managedPersistenceMonitoringConfiguration": {"enabled": True}}
    if not settings.job_log_group:
        return own
    group = {"enabled": True, "logGroupName": settings.job_log_group, "logTypes": _STREAMS}
    return {**own, "cloudWatchLoggingConfiguration": group}


_PERMANENT = ("ValidationException", "AccessDeniedException")


class UnknownRun(LakegateError):
    """EMR Serverless does not know this job run."""


class Jobs:
    """The EMR Serverless application that runs the jobs."""

    def __init__(self, client: Any, settings: Settings) -> None:
        """Use boto3's `emr-serverless` client."""
        self._client = client
        self._settings = settings

    def start(self, spec: JobSpec) -> str:
        """Start the job run of one attempt and return its id; return the existing one if started.

        Raises Permanent when EMR refuses the request itself, Transient otherwise. A missing
        application is Transient: the deployment is at fault, not the file.
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
        """Return the current state of a job run. Raises UnknownRun."""
        return _run(run, self._described(run))

    def runs(self, since: str = "") -> list[JobRun]:
        """Return every job run of the application created since a time (ISO 8601)."""
        given: dict[str, Any] = {"applicationId": self._settings.emr_application_id}
        if since:
            given["createdAtAfter"] = datetime.fromisoformat(since)
        with _translated():
            pages = self._client.get_paginator("list_job_runs").paginate(**given)
            return [_run(found["id"], found) for page in pages for found in page["jobRuns"]]

    def spec(self, run: str) -> JobSpec:
        """Return a job run's spec. Raises UnknownRun, or Permanent BAD_JOB_SPEC."""
        driver = self._described(run).get("jobDriver", {})
        try:
            return JobSpec.from_argument(*driver["sparkSubmit"]["entryPointArguments"])
        except (KeyError, TypeError, ValueError) as error:
            message = (
                f"job run {run} was not started by Lakegate: its argument is invalid: {error!r}"
            )
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
