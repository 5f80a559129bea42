"""boto3's clients for tests, and clients whose calls AWS refuses or does not answer."""

from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from botocore.config import Config

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


def _made(service: str, **how: Any) -> Any:
    make: Any = boto3.resource if service == "dynamodb" else boto3.client
    return make(service, **how, **ACCOUNT)
