"""Lambda: examine a deployment from inside its network."""

import os
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.config import Config

from functions.adapters.nessie import Catalog
from functions.adapters.secrets import secret
from functions.health.aws_probe import AwsProbe
from functions.health.examination import Expected, Probes, examine, examine_access
from functions.health.model import Finding, fail
from functions.health.nessie_checks import NessieProbe
from functions.settings import Settings
from functions.telemetry import logger
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
    """Return a list of findings for `{"do": "examine"}`; `expected` is as in Expected.

    `{"do": "access"}` examines only whom Nessie lets in. The sweep examines the publisher's token,
    which this function may not read.
    """
    look: Callable[[Probes], list[Finding]] = examine_access
    match event:
        case {"do": "examine"}:
            look = partial(examine, expected=Expected(**event.get("expected", {})))
        case {"do": "access"}:
            pass
        case _:
            message = f"unknown request {event!r}: use {{'do': 'examine'}} or 'access'"
            raise Permanent("UNKNOWN_REQUEST", message)
    try:
        findings = look(probes())
    except LakegateError as error:
        fix = "deploy again: the stack sets the functions' settings"
        findings = [fail(error.message, fix, "settings")]
    return [asdict(finding) for finding in findings]


def probes() -> Probes:
    """Return the probes of this Lambda's environment; no secret is read yet."""
    settings = Settings.of(os.environ)
    names = ("s3", "sqs", "dynamodb", "emr-serverless")
    vault = boto3.client("secretsmanager", config=_IMPATIENT)
    return Probes(
        settings=settings,
        aws=AwsProbe(*(boto3.client(name, config=_IMPATIENT) for name in names)),
        nessie=NessieProbe(settings.nessie_uri),
        catalog=lambda token: Catalog(settings.nessie_uri, token),
        secret=lambda name: secret(vault, name),
        now=lambda: datetime.now(UTC),
    )
