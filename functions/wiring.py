"""The one place that wires: from the environment to the adapters that a Lambda works with."""

import os
import secrets
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from slack_sdk import WebClient

from functions.alerts import Alerts, LogAlerts, SlackAlerts
from functions.catalog import Catalog
from functions.jobs import Jobs
from functions.ledger import Ledger
from functions.queues import DeadLetters
from functions.secret_store import secret
from functions.settings import Settings
from functions.storage import Lake, Landing
from functions.telemetry import logger
from functions.world import World
from lakegate import times

if TYPE_CHECKING:
    from functions.tables import Tables

_CONFIG = Config(retries={"mode": "standard", "max_attempts": 4}, s3={"addressing_style": "path"})


@cache
def world() -> World:
    """The adapters of this Lambda's environment, made once an instance."""
    return connect(Settings.of(os.environ))


def connect(settings: Settings) -> World:
    """The adapters that the settings describe; AWS's own variables say which account."""
    s3 = boto3.client("s3", config=_CONFIG)
    sqs = boto3.client("sqs", config=_CONFIG)
    dynamodb = boto3.resource("dynamodb", config=_CONFIG)
    vault = boto3.client("secretsmanager", config=_CONFIG)
    token = secret(vault, settings.nessie_token_secret)
    return World(
        settings=settings,
        landing=Landing(s3, settings.landing_bucket),
        lake=Lake(s3, settings.lake_bucket),
        ledger=Ledger(dynamodb.Table(settings.ledger_table)),
        catalog=Catalog(settings.nessie_uri, token),
        tables=cache(lambda: _tables(settings.nessie_uri, token, s3)),
        jobs=Jobs(boto3.client("emr-serverless", config=_CONFIG), settings),
        alerts=_alerts(settings, vault),
        upload_dead_letters=DeadLetters(sqs, settings.upload_dead_letters),
        job_run_dead_letters=DeadLetters(sqs, settings.job_run_dead_letters),
        now=lambda: times.text(datetime.now(UTC)),
        token=lambda: secrets.token_hex(3),
    )


def _alerts(settings: Settings, vault: Any) -> Alerts:
    if not settings.slack_token_secret:
        return LogAlerts(logger)
    client = WebClient(secret(vault, settings.slack_token_secret), timeout=10)
    if settings.slack_url:
        client.base_url = settings.slack_url
    return SlackAlerts(client, settings.slack_channel)


def _tables(nessie_uri: str, token: str, s3: Any) -> "Tables":
    from functions.tables import Tables  # two seconds, only for a rebase

    return Tables(nessie_uri, token, s3)
