"""The role that a job run takes: it may do what the role and the run's own policy both allow."""

from collections.abc import Mapping
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from infra.local.emr.runs import Application, JobRun
from infra.local.emr.submit import CannotSubmit

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
