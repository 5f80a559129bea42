"""Job runs as values: their states, the changes between them, and AWS's form of them."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from infra.local.emr.submit import DEFAULT_WORKERS, CannotSubmit, Workers, parameters

FINAL = frozenset({"SUCCESS", "FAILED", "CANCELLED"})
WAITING = frozenset({"SUBMITTED", "QUEUED"})

# The states that may follow a state.
_NEXT = {
    "SUBMITTED": {"QUEUED", "PENDING", "CANCELLING"},
    "QUEUED": {"PENDING", "CANCELLING"},
    "PENDING": {"SCHEDULED", "FAILED", "CANCELLING"},
    "SCHEDULED": {"RUNNING", "FAILED", "CANCELLING"},
    "RUNNING": {"SUCCESS", "FAILED", "CANCELLING"},
    "CANCELLING": {"CANCELLED"},
}
_DEFAULT_TIMEOUT_MINUTES = 720
_DETAILS_LENGTH = 256
_LEAST_BILLED_SECONDS = 60
_GB_OF_A_CPU = 4  # the default
_GB_OF_STORAGE = 20  # that each worker has without a charge


class WrongState(Exception):
    """The run cannot change to this state from its own."""


@dataclass(frozen=True)
class Application:
    """An application, to which job runs belong, with its limits."""

    id: str
    name: str
    release_label: str
    region: str
    account: str
    max_concurrent_runs: int
    queue_timeout_minutes: int
    maximum_cpu: int
    idle_minutes: int
    created_at: float

    @property
    def arn(self) -> str:
        """Return the application's Amazon Resource Name."""
        return f"arn:aws:emr-serverless:{self.region}:{self.account}:/applications/{self.id}"

    @property
    def caller(self) -> str:
        """Return the caller of every job run: the stand-in checks no signatures."""
        return f"arn:aws:sts::{self.account}:assumed-role/local/lakegate"


@dataclass(frozen=True)
class JobRun:
    """One job run and the request that started it. Times are seconds since 1970."""

    id: str
    request: dict[str, Any]
    created_at: float
    updated_at: float
    state: str = "SUBMITTED"
    details: str = "SUBMITTED"
    queued_seconds: float | None = None
    started_at: float | None = None
    ended_at: float | None = None

    @property
    def application(self) -> str:
        """Return the id of the application that it belongs to."""
        return str(self.request["applicationId"])

    @property
    def timeout_minutes(self) -> int:
        """Return how long the run may be RUNNING."""
        return self.request.get("executionTimeoutMinutes", _DEFAULT_TIMEOUT_MINUTES)

    @property
    def workers(self) -> Workers:
        """Return the size of its workers; unreadable parameters fail when the run starts."""
        try:
            return parameters(self.spark_submit.get("sparkSubmitParameters", "")).workers
        except CannotSubmit:
            return DEFAULT_WORKERS

    @property
    def spark_submit(self) -> dict[str, Any]:
        """Return `entryPoint`, `entryPointArguments` and `sparkSubmitParameters`."""
        return self.request["jobDriver"]["sparkSubmit"]


def moved(run: JobRun, state: str, now: float, details: str = "") -> JobRun:
    """Return the run in its next state. The details of a state that needs none are its name.

    Raises WrongState if the run cannot change to that state from its own.
    """
    if state not in _NEXT.get(run.state, ()):
        raise WrongState(f"job run {run.id} is {run.state}: it cannot become {state}")
    details = (details or state)[:_DETAILS_LENGTH]
    changes: dict[str, Any] = {"state": state, "details": details, "updated_at": now}
    if run.state == "QUEUED":
        changes["queued_seconds"] = now - run.updated_at
    if state == "RUNNING":
        changes["started_at"] = now
    if state in FINAL:
        changes["ended_at"] = now
    return dataclasses.replace(run, **changes)


def expired(run: JobRun, now: float, details: str) -> JobRun:
    """Return a run that was QUEUED for too long as CANCELLING. Raises WrongState."""
    if run.state != "QUEUED":
        raise WrongState(f"job run {run.id} is {run.state}: it does not wait any more")
    return moved(run, "CANCELLING", now, details)


def failed(run: JobRun, now: float, details: str) -> JobRun:
    """Return the run as FAILED, or as CANCELLED where it was CANCELLING."""
    if run.state == "CANCELLING":
        return moved(run, "CANCELLED", now, run.details)
    return moved(run, "FAILED", now, details)


def arn(run: JobRun, application: Application) -> str:
    """Return the job run's Amazon Resource Name."""
    return f"{application.arn}/jobruns/{run.id}"


def application_state(
    job_runs: Sequence[JobRun], now: float, stopped_at: float, idle_seconds: float
) -> str:
    """Return the application's state (User Guide, "Application states"); starting takes no time.

    It stops at `stopped_at`, or after it was idle for so long; the next run starts it.
    """
    if not job_runs:
        return "CREATED"
    if any(run.state not in FINAL for run in job_runs):
        return "STARTED"
    ended = max(run.ended_at or 0 for run in job_runs)
    return "STOPPED" if stopped_at > ended or now - ended > idle_seconds else "STARTED"


def application_description(application: Application, state: str) -> dict[str, Any]:
    """Return the application as GetApplication shows it."""
    return {
        "applicationId": application.id,
        "arn": application.arn,
        "name": application.name,
        "releaseLabel": application.release_label,
        "type": "Spark",
        "state": state,
        "createdAt": application.created_at,
        "updatedAt": application.created_at,
        "maximumCapacity": {
            "cpu": f"{application.maximum_cpu}vCPU",
            "memory": f"{4 * application.maximum_cpu}GB",
        },
        "autoStopConfiguration": {
            "enabled": True,
            "idleTimeoutMinutes": application.idle_minutes,
        },
        "schedulerConfiguration": {
            "maxConcurrentRuns": application.max_concurrent_runs,
            "queueTimeoutMinutes": application.queue_timeout_minutes,
        },
    }


def summary(run: JobRun, application: Application) -> dict[str, Any]:
    """Return the run as ListJobRuns shows it."""
    named = {"name": run.request["name"]} if "name" in run.request else {}
    return named | {
        "id": run.id,
        "applicationId": application.id,
        "arn": arn(run, application),
        "attempt": 1,
        "createdBy": application.caller,
        "executionRole": run.request["executionRoleArn"],
        "mode": "BATCH",
        "releaseLabel": application.release_label,
        "state": run.state,
        "stateDetails": run.details,
        "createdAt": run.created_at,
        "updatedAt": run.updated_at,
        "attemptCreatedAt": run.created_at,
        "attemptUpdatedAt": run.updated_at,
    }


def description(run: JobRun, application: Application) -> dict[str, Any]:
    """Return the run as GetJobRun shows it."""
    shown = summary(run, application)
    shown["jobRunId"] = shown.pop("id")
    copied = ("jobDriver", "configurationOverrides", "executionIamPolicy", "retryPolicy")
    return {
        **shown,
        "executionTimeoutMinutes": run.timeout_minutes,
        "tags": run.request.get("tags", {}),
        **{name: run.request[name] for name in copied if name in run.request},
        **_durations(run),
    }


def _durations(run: JobRun) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if run.queued_seconds is not None:
        shown["queuedDurationMilliseconds"] = round(1000 * run.queued_seconds)
    if run.started_at:
        shown["startedAt"] = run.started_at
    if run.ended_at:
        shown["endedAt"] = run.ended_at
        started = run.started_at or run.ended_at
        shown["totalExecutionDurationSeconds"] = round(run.ended_at - started)
    if run.ended_at and run.started_at:
        shown |= _utilization(run, run.ended_at - run.started_at)
    return shown


def _utilization(run: JobRun, seconds: float) -> dict[str, dict[str, float]]:
    """Return what a run used, and what is billed: a minute at least, and no storage up to 20 GB."""
    billed = max(seconds, _LEAST_BILLED_SECONDS) / 3600
    storage = (1 + run.workers.executors) * _GB_OF_STORAGE * seconds / 3600
    return {
        "totalResourceUtilization": _used(run, seconds / 3600) | {"storageGBHour": storage},
        "billedResourceUtilization": _used(run, billed),
    }


def _used(run: JobRun, hours: float) -> dict[str, float]:
    workers = run.workers
    cpus = workers.driver + workers.executor * workers.executors
    return {
        "vCPUHour": round(cpus * hours, 6),
        "memoryGBHour": round(_GB_OF_A_CPU * cpus * hours, 6),
        "storageGBHour": 0.0,
    }
