"""Clients of roles that have the rights a test states, and the words in which AWS refuses them."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from infra.local import ministack

# Makes a role with statements, and returns its credentials, as boto3 takes them.
Rights = Callable[..., dict[str, str]]
_ROOT = {"AWS": f"arn:aws:iam::{ministack.ACCOUNT}:root"}
_TRUST = {"Effect": "Allow", "Principal": _ROOT, "Action": "sts:AssumeRole"}


def allow(action: str, resource: str = "*", **more: Any) -> dict[str, Any]:
    """Return a statement that allows an action."""
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def credentials(
    aws: str, role: str, *statements: Mapping[str, Any], session: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """Return the credentials of a new role of the local AWS at an address."""
    iam = ministack.client("iam", aws)
    iam.create_role(RoleName=role, AssumeRolePolicyDocument=_document(_TRUST))
    iam.put_role_policy(RoleName=role, PolicyName="p", PolicyDocument=_document(*statements))
    narrowed = {"Policy": _document(session)} if session else {}
    taken = ministack.client("sts", aws).assume_role(
        RoleArn=f"arn:aws:iam::{ministack.ACCOUNT}:role/{role}", RoleSessionName="ann", **narrowed
    )["Credentials"]
    return {
        "aws_access_key_id": taken["AccessKeyId"],
        "aws_secret_access_key": taken["SecretAccessKey"],
        "aws_session_token": taken["SessionToken"],
    }


def client(service: str, address: str, held: Mapping[str, str]) -> Any:
    """Return boto3's client of a service with these credentials; it tries a call once."""
    once = Config(retries={"total_max_attempts": 1})
    region = ministack.REGION
    return boto3.client(service, endpoint_url=address, region_name=region, config=once, **held)


def refusal(call: Callable[..., Any], **given: Any) -> str:
    """Return the code and the message with which a call is refused."""
    with pytest.raises(ClientError) as refused:
        call(**given)
    error = refused.value.response["Error"]
    return f"{error['Code']}: {error['Message']}"


def _document(*statements: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
