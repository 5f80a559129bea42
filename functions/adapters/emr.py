"""Start and read job runs of EMR Serverless."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.adapters.emr_run_policy import run_policy, shared_run_policy
from functions.adapters.spark_submit import monitoring, spark_submit
from functions.model.budget import Use
from functions.settings import Settings
from lakegate.errors import LakegateError, Permanent, Transient
from lakegate.job.jobspec import JobSpec
from lakegate.job.shared_run import SharedRun
from lakegate.refusals import unavailable

# What EMR Serverless says of an application that takes no run in the state that it is in. One stops
# whenever it was idle, and is then started by the next run (User Guide, "Application states").
_OF_STATE = re.compile(
    r"\bApplications?\b.*\b(?:CREATING|STARTING|STOPPING|STOPPED|TERMINATED)\b", re.DOTALL
)
_PAGES = {"PageSize": 50}  # the most that it lists at once


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
        (`widened`). Raises Permanent when EMR refuses the request itself, Transient otherwise. An
        application that is missing or stops, or a missing right, is Transient: the file is not at
        fault.
        """
        with _translated():
            run = self._client.start_job_run(
                executionRoleArn=self._settings.emr_role_arn,
                clientToken=told.name,
                name=told.name,
                jobDriver={"sparkSubmit": spark_submit(told, self._settings)},
                configurationOverrides={"monitoringConfiguration": monitoring(self._settings)},
                retryPolicy={"maxAttempts": 1},  # more would also repeat rejected ones
                **_bounds(told, self._settings),
            )
        return str(run["jobRunId"])

    def get(self, run: str) -> JobRun:
        """Return the current state of a job run. Raises UnknownRun."""
        described = self.describe(run)
        return replace(_run(run, described), use=_use(described))

    def runs(self, since: str = "") -> list[JobRun]:
        """Return every job run of the applications created since a time (ISO 8601)."""
        given = {"createdAtAfter": datetime.fromisoformat(since)} if since else {}
        listed = self._client.get_paginator("list_job_runs").paginate
        with _translated():
            return [
                _run(entry["id"], entry)
                for application in self._settings.emr_applications
                for page in listed(applicationId=application, PaginationConfig=_PAGES, **given)
                for entry in page["jobRuns"]
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
                answer = self._client.get_job_run(applicationId=application, jobRunId=run)
                return dict(answer["jobRun"])
        raise UnknownRun("UNKNOWN_JOB_RUN", f"EMR Serverless does not know job run {run}")


def _bounds(told: JobSpec | SharedRun, settings: Settings) -> dict[str, Any]:
    """Return where a job run starts, what it may do, for how long, and the tag for its cost.

    Shared runs start apart, so that large files never hold small ones.
    """
    if isinstance(told, SharedRun):
        application, tags = settings.emr_shared_application_id, {"lakegate:shared": "yes"}
        policy, minutes = shared_run_policy(told, settings), told.timeout_minutes
    else:
        application, tags = settings.emr_application_id, {"lakegate:table": told.table}
        policy, minutes = run_policy(told, settings), settings.job_timeout_minutes
    return {
        "applicationId": application,
        "executionIamPolicy": {"policy": policy},
        "executionTimeoutMinutes": minutes,
        "tags": tags,
    }


def _run(run: str, described: Mapping[str, Any]) -> JobRun:
    return JobRun(
        id=run,
        name=described.get("name", ""),
        state=RunState(described["state"]),
        details=described.get("stateDetails", ""),
    )


def _use(described: Mapping[str, Any]) -> Use | None:
    """Return what was billed for a run, nothing if it never began to execute.

    EMR Serverless tells it some seconds after the end; until then there is none, or zeros.
    """
    billed = described.get("billedResourceUtilization") or {}
    if billed.get("vCPUHour"):
        names = ("vCPUHour", "memoryGBHour", "storageGBHour")
        return Use(*(float(billed.get(name) or 0) for name in names))
    return None if described.get("startedAt") else Use()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code == "ValidationException" and not _OF_STATE.search(str(error)):
            raise Permanent("JOB_REFUSED", f"EMR Serverless refused: {error}") from error
        message = f"EMR Serverless refused: {error}"
        raise unavailable(error, "JOBS_UNAVAILABLE", message) from error
    except BotoCoreError as error:
        raise Transient("JOBS_UNAVAILABLE", f"EMR Serverless did not answer: {error}") from error
