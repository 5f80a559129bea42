"""Lambda: examine and seed a deployment from inside its network."""

import os
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.config import Config

from functions.adapters.nessie import Catalog
from functions.adapters.secrets import secret
from functions.health.aws_probe import AwsProbe
from functions.health.checks import Expected, Probes, examine
from functions.health.model import Finding, fail
from functions.health.nessie_checks import NessieProbe
from functions.pipeline.seed import seed
from functions.settings import CheckupSettings, Settings
from functions.telemetry import logger
from functions.wiring import adapters
from lakegate.errors import LakegateError, Permanent

# Report a probe that does not answer soon.
_IMPATIENT = Config(
    retries={"mode": "standard", "max_attempts": 2},
    connect_timeout=5,
    read_timeout=10,
    s3={"addressing_style": "path"},
)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """Do what the event asks for, and return the result.

    `{"do": "seed"}` seeds main and returns what it added. `{"do": "examine"}` returns a list of
    findings; its `expected` may name versions, as Expected does.
    """
    match event:
        case {"do": "seed"}:
            return asdict(seed(adapters()))
        case {"do": "examine"}:
            return [asdict(finding) for finding in _examine(event.get("expected", {}))]
    message = f"unknown request {event!r}: use {{'do': 'seed'}} or {{'do': 'examine'}}"
    raise Permanent("UNKNOWN_REQUEST", message)


def _examine(expected: dict[str, str]) -> list[Finding]:
    try:
        return examine(probes(), Expected(**expected))
    except LakegateError as error:
        fix = "deploy again: the stack sets the functions' settings"
        return [fail("settings", error.message, fix)]


def probes() -> Probes:
    """Return the probes of this Lambda's environment; no secret is read yet."""
    settings = Settings.of(os.environ)
    names = ("s3", "sqs", "dynamodb", "emr-serverless")
    vault = boto3.client("secretsmanager", config=_IMPATIENT)
    return Probes(
        settings=settings,
        own=CheckupSettings.of(os.environ),
        aws=AwsProbe(*(boto3.client(name, config=_IMPATIENT) for name in names)),
        nessie=NessieProbe(settings.nessie_uri),
        catalog=lambda token: Catalog(settings.nessie_uri, token),
        secret=lambda name: secret(vault, name),
        now=lambda: datetime.now(UTC),
    )
