"""Job runs as values: their states, the moves between them, and how AWS's API shows them."""

import dataclasses
from dataclasses import dataclass
from typing import Any

FINAL = frozenset({"SUCCESS", "FAILED", "CANCELLED"})
WAITING = frozenset({"SUBMITTED", "QUEUED"})

# What may follow a state. A failed attempt with attempts left is followed by a new, SUBMITTED one.
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


class WrongState(Exception):
    """The move is not possible from the state in which the run is."""


@dataclass(frozen=True)
class Application:
    """The one application: job runs belong to it, and it says how many run at a time."""

    id: str
    release_label: str
    region: str
    account: str
    max_concurrent_runs: int
    queue_timeout_minutes: int
    created_at: float

    @property
    def arn(self) -> str:
        """The application's Amazon Resource Name."""
        return f"arn:aws:emr-serverless:{self.region}:{self.account}:/applications/{self.id}"

    @property
    def caller(self) -> str:
        """Who starts every job run here: the stand-in checks no signatures."""
        return f"arn:aws:sts::{self.account}:assumed-role/local/lakegate"


@dataclass(frozen=True)
class Attempt:
    """One try at a job run. Times are seconds since 1970."""

    number: int
    state: str
    details: str
    created_at: float
    updated_at: float
    queued_seconds: float | None = None
    started_at: float | None = None
    ended_at: float | None = None


@dataclass(frozen=True)
class JobRun:
    """One job run: the request that started it, as it came, and its attempts, the last one last."""

    id: str
    request: dict[str, Any]
    created_at: float
    attempts: tuple[Attempt, ...]

    @property
    def last(self) -> Attempt:
        """The attempt that counts."""
        return self.attempts[-1]

    @property
    def state(self) -> str:
        """The state of the last attempt."""
        return self.last.state

    @property
    def max_attempts(self) -> int:
        """How often the run may be tried."""
        return self.request.get("retryPolicy", {}).get("maxAttempts", 1)

    @property
    def timeout_minutes(self) -> int:
        """How long one attempt may be RUNNING."""
        return self.request.get("executionTimeoutMinutes", _DEFAULT_TIMEOUT_MINUTES)

    @property
    def spark_submit(self) -> dict[str, Any]:
        """What to run: `entryPoint`, `entryPointArguments`, `sparkSubmitParameters`."""
        return self.request["jobDriver"]["sparkSubmit"]


def submitted(run_id: str, request: dict[str, Any], now: float) -> JobRun:
    """A new job run."""
    return JobRun(run_id, request, now, (_new_attempt(1, now),))


def _new_attempt(number: int, now: float) -> Attempt:
    return Attempt(number, "SUBMITTED", "SUBMITTED", now, now)


def moved(run: JobRun, state: str, now: float, details: str = "") -> JobRun:
    """The run in its next state. The details of a state that needs none are its name.

    Raises WrongState where the run cannot come to that state from its own.
    """
    if state not in _NEXT.get(run.state, ()):
        raise WrongState(f"job run {run.id} is {run.state}: it cannot become {state}")
    details = (details or state)[:_DETAILS_LENGTH]
    changes: dict[str, Any] = {"state": state, "details": details, "updated_at": now}
    if run.state == "QUEUED":
        changes["queued_seconds"] = now - run.last.updated_at
    if state == "RUNNING":
        changes["started_at"] = now
    if state in FINAL:
        changes["ended_at"] = now
    last = dataclasses.replace(run.last, **changes)
    return dataclasses.replace(run, attempts=(*run.attempts[:-1], last))


def failed(run: JobRun, now: float, details: str) -> JobRun:
    """The run after its attempt failed: FAILED, or SUBMITTED again where attempts are left.

    One that was being cancelled is CANCELLED by it.
    """
    if run.state == "CANCELLING":
        return moved(run, "CANCELLED", now, run.last.details)
    ended = moved(run, "FAILED", now, details)
    if ended.last.number >= run.max_attempts:
        return ended
    return dataclasses.replace(
        ended, attempts=(*ended.attempts, _new_attempt(ended.last.number + 1, now))
    )


def from_json(record: dict[str, Any]) -> JobRun:
    """The run that `dataclasses.asdict` made this record of."""
    attempts = tuple(Attempt(**attempt) for attempt in record["attempts"])
    return JobRun(**{**record, "attempts": attempts})


def arn(run: JobRun, application: Application) -> str:
    """The job run's Amazon Resource Name."""
    return f"{application.arn}/jobruns/{run.id}"


def application_summary(application: Application) -> dict[str, Any]:
    """The application as ListApplications shows it."""
    return {
        "id": application.id,
        "arn": application.arn,
        "name": "lakegate-local",
        "releaseLabel": application.release_label,
        "type": "Spark",
        "state": "STARTED",
        "createdAt": application.created_at,
        "updatedAt": application.created_at,
    }


def application_description(application: Application) -> dict[str, Any]:
    """The application as GetApplication shows it."""
    shown = application_summary(application)
    shown["applicationId"] = shown.pop("id")
    shown["schedulerConfiguration"] = {
        "maxConcurrentRuns": application.max_concurrent_runs,
        "queueTimeoutMinutes": application.queue_timeout_minutes,
    }
    return shown


def summary(run: JobRun, application: Application) -> dict[str, Any]:
    """The run as ListJobRuns shows it."""
    return {
        "id": run.id,
        "createdAt": run.created_at,
        "updatedAt": run.last.updated_at,
        "attemptCreatedAt": run.last.created_at,
        "attemptUpdatedAt": run.last.updated_at,
        **_shared(run, run.last, application),
    }


def attempt_summary(run: JobRun, attempt: Attempt, application: Application) -> dict[str, Any]:
    """One attempt as ListJobRunAttempts shows it."""
    return {
        "id": run.id,
        "jobCreatedAt": run.created_at,
        "createdAt": attempt.created_at,
        "updatedAt": attempt.updated_at,
        **_shared(run, attempt, application),
    }


def description(run: JobRun, attempt: Attempt, application: Application) -> dict[str, Any]:
    """The run and one of its attempts as GetJobRun shows them."""
    copied = ("jobDriver", "configurationOverrides", "executionIamPolicy", "retryPolicy")
    return {
        "jobRunId": run.id,
        "createdAt": run.created_at,
        "updatedAt": attempt.updated_at,
        "attemptCreatedAt": attempt.created_at,
        "attemptUpdatedAt": attempt.updated_at,
        "executionTimeoutMinutes": run.timeout_minutes,
        "tags": run.request.get("tags", {}),
        **{name: run.request[name] for name in copied if name in run.request},
        **_shared(run, attempt, application),
        **_durations(attempt),
    }


def _shared(run: JobRun, attempt: Attempt, application: Application) -> dict[str, Any]:
    named = {"name": run.request["name"]} if "name" in run.request else {}
    return named | {
        "applicationId": application.id,
        "arn": arn(run, application),
        "attempt": attempt.number,
        "createdBy": application.caller,
        "executionRole": run.request["executionRoleArn"],
        "mode": "BATCH",
        "releaseLabel": application.release_label,
        "state": attempt.state,
        "stateDetails": attempt.details,
    }


def _durations(attempt: Attempt) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if attempt.queued_seconds is not None:
        shown["queuedDurationMilliseconds"] = round(1000 * attempt.queued_seconds)
    if attempt.started_at:
        shown["startedAt"] = attempt.started_at
    if attempt.ended_at:
        started = attempt.started_at or attempt.ended_at
        shown["endedAt"] = attempt.ended_at
        shown["totalExecutionDurationSeconds"] = round(attempt.ended_at - started)
    return shown
