"""What can be told to go wrong, by `PUT /_control`."""

import dataclasses
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from infra.local.emr.runs import Application, JobRun
from infra.local.emr.submit import CannotSubmit

# How many of the next: that many, all of them, or (below 1) that share of them.
HowMany = int | float | Literal["all"]


class NoSuchFault(Exception):
    """The request to `/_control` names something that cannot be told to go wrong."""


@dataclass
class EventFaults:
    """What goes wrong with events; `states` limits it to the changes to those states."""

    lose: HowMany = 0
    double: HowMany = 0
    reverse: int = 0
    delay_seconds: float = 0
    states: tuple[str, ...] = ()


@dataclass
class RequestFaults:
    """What goes wrong with StartJobRun; `fail_with` is the error that the caller gets."""

    fail_next_starts: HowMany = 0
    lose_next_answers: HowMany = 0
    fail_with: str = "InternalServerException"


class Faults:
    """The faults in force."""

    def __init__(self) -> None:
        self._random = random.Random(0)  # noqa: S311  the same shares in every process
        self.replace({})

    def replace(self, told: dict[str, Any]) -> None:
        """Forget what was told, and have this go wrong. Raises NoSuchFault."""
        events = told.pop("events", {})
        try:
            self.events, self.requests = EventFaults(**events), RequestFaults(**told)
        except TypeError as error:
            raise NoSuchFault(str(error)) from error

    def told(self) -> dict[str, Any]:
        """What is left of what was told."""
        return {"events": dataclasses.asdict(self.events), **dataclasses.asdict(self.requests)}

    def strikes(self, faults: EventFaults | RequestFaults, name: str) -> bool:
        """Whether this fault hits now; where the number of its hits was told, it counts down."""
        left: HowMany = getattr(faults, name)
        if left == "all":
            return True
        if 0 < left < 1:
            return self._random.random() < left
        setattr(faults, name, max(0, left - 1))
        return left > 0


# The role that a job run takes: it may do what the role and the run's own policy both allow.

Environment = Mapping[str, str]


def assumed(run: JobRun, application: Application) -> Environment:
    """A run's credentials, as environment variables, for the role that its request names.

    The role's trust policy is told on whose behalf it is taken, as an external id: ministack has
    that from nowhere else. Raises CannotSubmit where the role does not let EMR Serverless take it.
    """
    policy = run.request.get("executionIamPolicy", {})
    given: dict[str, Any] = {"Policy": policy["policy"]} if "policy" in policy else {}
    given |= {"PolicyArns": [{"arn": arn} for arn in policy.get("policyArns", ())]}
    role = run.request["executionRoleArn"]
    given |= {"RoleSessionName": run.id, "ExternalId": application.arn}
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


def own(_run: JobRun, _application: Application) -> Environment:
    """None: the run has the stand-in's own credentials, whatever its request names."""
    return {}
