"""Job runs of EMR Serverless."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.job_run import JobRun, RunState
from functions.narrowing import run_policy
from functions.settings import Settings
from functions.submission import monitoring, spark_submit
from lakegate.errors import LakegateError, Permanent, Transient
from lakegate.jobspec import JobSpec
from lakegate.landing import run_name

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
                retryPolicy={"maxAttempts": self._settings.job_attempts},
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
