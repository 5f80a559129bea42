"""The rights of callers and of job runs, as the local AWS's IAM decides them.

A caller is known by the access key of its signature; the signature itself is not checked.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import boto3
import requests
from botocore.exceptions import BotoCoreError, ClientError

from infra.local.emr.api import Require
from infra.local.emr.refusals import AwsError
from infra.local.emr.runs import Application, JobRun
from infra.local.emr.submit import CannotSubmit

_CALLER = re.compile(r"Credential=([^/]+)/\d{8}/[^/]+/emr-serverless/aws4_request")
_SECONDS = 60.0


class Need(NamedTuple):
    """A right that a call takes: an action, its resource, and condition keys."""

    action: str
    resource: str
    keys: Mapping[str, str] = {}


def require_nothing(_operation: str, _given: Mapping[str, Any], _authorization: str) -> None:
    """Let everybody do everything."""


def require_rights(application: Application) -> Require:
    """Return a check that asks IAM for every right that an operation takes."""

    def require(operation: str, given: Mapping[str, Any], authorization: str) -> None:
        caller = _CALLER.search(authorization)
        if not caller:
            raise AwsError("MissingAuthenticationTokenException", "Missing Authentication Token")
        for need in needs(operation, given, application):
            if refusal := _refusal(caller[1], need):
                raise AwsError("AccessDeniedException", refusal)

    return require


def needs(operation: str, given: Mapping[str, Any], application: Application) -> Iterator[Need]:
    """Yield what a call takes (Service Authorization Reference, "Amazon EMR Serverless")."""
    where = application.arn.replace(application.id, given["applicationId"])
    run = f"{where}/jobruns/{given.get('jobRunId', '0' * 16)}"
    yield Need(f"emr-serverless:{operation}", run if operation == "GetJobRun" else where)
    if operation == "StartJobRun":
        service = {"iam:PassedToService": "emr-serverless.amazonaws.com"}
        yield Need("iam:PassRole", given["executionRoleArn"], service)
        if given.get("tags"):
            yield Need("emr-serverless:TagResource", run)


def _refusal(caller: str, need: Need) -> str:
    """Return why IAM refuses a right, in AWS's words; "" if it does not."""
    asked = {"caller": caller, **need._asdict()}
    answer = requests.post(
        f"{os.environ['AWS_ENDPOINT_URL']}/_rights", json=asked, timeout=_SECONDS
    )
    answer.raise_for_status()
    return str(answer.json()["refusal"])


# A job run assumes a role: it may do what the role and the run's own policy both allow.
#
# On EMR its credentials are renewed while it runs. Here they last as long as it may run, or twelve
# hours, the longest session of a role.
_LONGEST_SESSION = 12 * 3600
_SHORTEST_SESSION = 15 * 60
_STARTING_MINUTES = 5  # from the session to the driver's first order, on a busy machine
_OWN = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")

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
    """Return the stand-in's own credentials, whatever role the run's request names."""
    return {name: os.environ[name] for name in _OWN if name in os.environ}
