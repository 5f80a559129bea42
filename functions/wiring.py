"""The one place that wires: from the environment to the adapters that a Lambda works with."""

import os
import secrets
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from functions.aws_probe import AwsProbe
from functions.catalog import Catalog
from functions.examining import Scene
from functions.jobs import Jobs
from functions.lake import Lake
from functions.landing_bucket import Landing
from functions.ledger import Ledger
from functions.nessie_probe import NessieProbe
from functions.queues import AlertQueue, DeadLetters
from functions.readers.announcing import Readers
from functions.readers.event_bus import EventBus
from functions.readers.queues import AnnouncementQueue, RefreshQueue
from functions.readers.settings import ReaderSettings
from functions.secret_store import Secret, secret
from functions.settings import (
    CheckupSettings,
    Settings,
)
from functions.world import World
from lakegate import times

if TYPE_CHECKING:
    from functions.tables import Tables

# For an examination: what does not answer soon is told.
_IMPATIENT = Config(
    retries={"mode": "standard", "max_attempts": 2},
    connect_timeout=5,
    read_timeout=10,
    s3={"addressing_style": "path"},
)
_CONFIG = Config(retries={"mode": "standard", "max_attempts": 4}, s3={"addressing_style": "path"})


@cache
def world() -> World:
    """The adapters of this Lambda's environment, made once an instance."""
    return connect(Settings.of(os.environ))


@cache
def readers() -> Readers:
    """Whom this Lambda's environment has told of an ingestion's end, made once an instance."""
    settings = ReaderSettings.of(os.environ)
    sqs = boto3.client("sqs", config=_CONFIG)
    events = boto3.client("events", config=_CONFIG)
    queues = filter(None, (settings.glue_queue, settings.snowflake_queue))
    return Readers(
        bus=EventBus(events, settings.event_bus, settings.stage),
        warehouses=tuple(RefreshQueue(sqs, url) for url in queues),
    )


def scene() -> Scene:
    """What an examination in this Lambda's environment works with; no secret is read for it yet."""
    settings = Settings.of(os.environ)
    names = ("s3", "sqs", "dynamodb", "emr-serverless")
    vault = boto3.client("secretsmanager", config=_IMPATIENT)
    return Scene(
        settings=settings,
        own=CheckupSettings.of(os.environ),
        aws=AwsProbe(*(boto3.client(name, config=_IMPATIENT) for name in names)),
        nessie=NessieProbe(settings.nessie_uri),
        catalog=lambda token: Catalog(settings.nessie_uri, token),
        secret=lambda name: secret(vault, name),
        now=lambda: datetime.now(UTC),
    )


def connect(settings: Settings) -> World:
    """The adapters that the settings describe; AWS's own variables say which account."""
    s3 = boto3.client("s3", config=_CONFIG)
    sqs = boto3.client("sqs", config=_CONFIG)
    dynamodb = boto3.resource("dynamodb", config=_CONFIG)
    vault = boto3.client("secretsmanager", config=_CONFIG)
    token = Secret(vault, settings.nessie_token_secret)
    return World(
        settings=settings,
        landing=Landing(s3, settings.landing_bucket),
        lake=Lake(
            s3, settings.lake_bucket, cache(lambda: _clean_up(settings, s3)), settings.limits
        ),
        ledger=Ledger(dynamodb.Table(settings.ledger_table), _now),
        catalog=Catalog(settings.nessie_uri, token),
        tables=cache(lambda: _tables(settings.nessie_uri, token, s3)),
        jobs=Jobs(boto3.client("emr-serverless", config=_CONFIG), settings),
        alerts=AlertQueue(sqs, settings.alert_queue, has_topic=bool(settings.alert_topic)),
        announcements=AnnouncementQueue(sqs, settings.announcement_queue),
        upload_dead_letters=DeadLetters(sqs, settings.upload_dead_letters),
        job_run_dead_letters=DeadLetters(sqs, settings.job_run_dead_letters),
        alert_dead_letters=DeadLetters(sqs, settings.alert_dead_letters),
        now=_now,
        token=lambda: secrets.token_hex(3),
    )


def _now() -> str:
    return times.text(datetime.now(UTC))


def _clean_up(settings: Settings, s3: Any) -> Any:
    """The S3 client that may delete in the lake."""
    if not settings.clean_up_role_arn:
        return s3
    given = boto3.client("sts", config=_CONFIG).assume_role(
        RoleArn=settings.clean_up_role_arn, RoleSessionName="lakegate"
    )["Credentials"]
    return boto3.client(
        "s3",
        aws_access_key_id=given["AccessKeyId"],
        aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given["SessionToken"],
        config=_CONFIG,
    )


def _tables(nessie_uri: str, token: Secret, s3: Any) -> "Tables":
    from functions.tables import Tables  # two seconds, only for a rebase

    return Tables(nessie_uri, token, s3)
