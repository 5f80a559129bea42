"""The faults that `PUT /_control` sets, and the roles of job runs."""

import dataclasses
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from infra.local.emr.runs import Application, JobRun
from infra.local.emr.submit import CannotSubmit

# The number of the next ones, "all" of them, or (below 1) a share of them.
HowMany = int | float | Literal["all"]


class NoSuchFault(Exception):
    """A request to `/_control` for an unknown fault."""


@dataclass
class EventFaults:
    """The faults of events; `states` limits them to changes to those states."""

    lose: HowMany = 0
    double: HowMany = 0
    reverse: int = 0
    delay_seconds: float = 0
    states: tuple[str, ...] = ()


@dataclass
class RequestFaults:
    """The faults of StartJobRun; `fail_with` is the caller's error."""

    fail_next_starts: HowMany = 0
    lose_next_answers: HowMany = 0
    fail_with: str = "InternalServerException"


class Faults:
    """The active faults."""

    def __init__(self) -> None:
        self._random = random.Random(0)  # noqa: S311  the same shares in every process
        self.replace({})

    def replace(self, faults: dict[str, Any]) -> None:
        """Replace all faults. Raises NoSuchFault."""
        events = faults.pop("events", {})
        try:
            self.events, self.requests = EventFaults(**events), RequestFaults(**faults)
        except TypeError as error:
            raise NoSuchFault(str(error)) from error

    def left(self) -> dict[str, Any]:
        """Return the faults that are left."""
        return {"events": dataclasses.asdict(self.events), **dataclasses.asdict(self.requests)}

    def strikes(self, faults: EventFaults | RequestFaults, name: str) -> bool:
        """Return whether this fault occurs now; a number of occurrences counts down."""
        left: HowMany = getattr(faults, name)
        if left == "all":
            return True
        if 0 < left < 1:
            return self._random.random() < left
        setattr(faults, name, max(0, left - 1))
        return left > 0


# A job run assumes a role: it may do what the role and the run's own policy both allow.
#
# On EMR its credentials are renewed while it runs. Here they last as long as it may run, or twelve
# hours, the longest session of a role.
_LONGEST_SESSION = 12 * 3600
_SHORTEST_SESSION = 15 * 60
_STARTING_MINUTES = 5  # from the session to the driver's first order, on a busy machine

Environment = Mapping[str, str]


def assumed(run: JobRun, application: Application) -> Environment:
    """Return a run's credentials for the role of its request, as environment variables.

    The external id has the application's ARN for the role's trust policy: ministack knows it from
    nowhere else. Raises CannotSubmit if the role does not let EMR Serverless assume it.
    """
    policy = run.request.get("executionIamPolicy", {})
    given: dict[str, Any] = {"Policy": policy["policy"]} if "policy" in policy else {}
    given |= {"PolicyArns": [{"arn": arn} for arn in policy.get("policyArns", ())]}
    role = run.request["executionRoleArn"]
    given |= {"RoleSessionName": run.id, "ExternalId": application.arn}
    given |= {"DurationSeconds": session_seconds(run.timeout_minutes)}
    try:
        answer = boto3.client("sts").assume_role(RoleArn=role, **given)
    except (BotoCoreError, ClientError) as error:
        raise CannotSubmit(f"EMR Serverless cannot take the role {role}: {error}") from error
    credentials = answer["Credentials"]
    return {
        "AWS_ACCESS_KEY_ID": credentials["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": credentials["SecretAccessKey"],
        "AWS_SESSION_TOKEN": credentials["SessionToken"],
    }


def session_seconds(timeout_minutes: int) -> int:
    """Return how long the session of a run lasts that may run for so long."""
    wanted = (timeout_minutes + _STARTING_MINUTES) * 60
    return max(_SHORTEST_SESSION, min(wanted, _LONGEST_SESSION))


def own(_run: JobRun, _application: Application) -> Environment:
    """Return no credentials: the run uses the stand-in's own, whatever role its request names."""
    return {}
