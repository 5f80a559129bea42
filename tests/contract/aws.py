"""boto3's clients for tests, clients whose calls AWS refuses or does not answer, and tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from moto import mock_aws

from infra import template
from tests.fakes import wire

ACCOUNT = {
    "region_name": "us-east-1",
    "aws_access_key_id": "test",
    "aws_secret_access_key": "test",
}


def refusing(service: str, code: str, message: str = "refused") -> Any:
    """Return a client (a resource for DynamoDB) whose every call is refused with this code."""
    made = _made(service)
    refusal = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {}}
    client = made.meta.client if service == "dynamodb" else made
    client.meta.events.register_first(
        "before-call", lambda **_: (AWSResponse("", 400, {}, None), refusal)
    )
    return made


def away(service: str) -> Any:
    """Return a client (a resource for DynamoDB) of an AWS that is unreachable."""
    once = Config(retries={"total_max_attempts": 1})
    return _made(service, endpoint_url=wire.nobody(), config=once)


@contextmanager
def table_of(resource: str) -> Iterator[Any]:
    """Yield a DynamoDB table as the template has it, in this process."""
    with mock_aws():
        yield boto3.resource("dynamodb", **ACCOUNT).create_table(
            TableName=f"{resource}-{uuid4().hex}", **_properties(resource)
        )


@cache
def _properties(resource: str) -> dict[str, Any]:
    root = Path(__file__).parents[2]
    made = template.read(root / "template.yaml")["Resources"][resource]["Properties"]
    return {name: made[name] for name in ("AttributeDefinitions", "KeySchema", "BillingMode")}


def _made(service: str, **how: Any) -> Any:
    make: Any = boto3.resource if service == "dynamodb" else boto3.client
    return make(service, **how, **ACCOUNT)
