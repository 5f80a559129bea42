"""The one place that wires: from the environment to the adapters that a Lambda works with."""

import os
import secrets
import time
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from slack_sdk import WebClient

from functions.adapters.all import Adapters
from functions.adapters.emr import Jobs
from functions.adapters.ledger import Ledger
from functions.adapters.nessie import Catalog
from functions.adapters.s3 import Lake, Landing
from functions.adapters.secrets import Secret, secret
from functions.adapters.sqs import AlertQueue, DeadLetters
from functions.downstream.announce import EventBus, Readers, Refreshing
from functions.downstream.queues import AnnouncementQueue, GivenUp, RefreshQueue
from functions.health.aws_probe import AwsProbe
from functions.health.checks import Probes
from functions.health.nessie_checks import NessieProbe
from functions.notifications.email import Topic
from functions.notifications.notify import AlertChannels
from functions.notifications.slack import LogAlerts, SlackAlerts, bot_token
from functions.notifications.threads import Threads
from functions.settings import (
    AlertSettings,
    CheckupSettings,
    GlueSettings,
    ReaderSettings,
    Settings,
    SlackSettings,
    SnowflakeSettings,
)
from functions.telemetry import logger
from lakegate import times

if TYPE_CHECKING:
    from functions.adapters.iceberg import Tables


# For an examination: what does not answer soon is told.
_IMPATIENT = Config(
    retries={"mode": "standard", "max_attempts": 2},
    connect_timeout=5,
    read_timeout=10,
    s3={"addressing_style": "path"},
)
_CONFIG = Config(retries={"mode": "standard", "max_attempts": 4}, s3={"addressing_style": "path"})


@cache
def adapters() -> Adapters:
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


def probes() -> Probes:
    """What an examination in this Lambda's environment works with; no secret is read for it yet."""
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


def connect(settings: Settings) -> Adapters:
    """The adapters that the settings describe; AWS's own variables say which account."""
    s3 = boto3.client("s3", config=_CONFIG)
    sqs = boto3.client("sqs", config=_CONFIG)
    dynamodb = boto3.resource("dynamodb", config=_CONFIG)
    vault = boto3.client("secretsmanager", config=_CONFIG)
    token = Secret(vault, settings.nessie_token_secret)
    return Adapters(
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
    from functions.adapters.iceberg import Tables  # two seconds, only for a rebase

    return Tables(nessie_uri, token, s3)


# What tells people, wired from a Lambda's environment.
#
# Apart from the other adapters: Slack's client takes a tenth of a cold start; only on_alert needs
# it.

_DAY, _WEEK = 86_400, 7
_SLACK_CONFIG = Config(retries={"mode": "standard", "max_attempts": 4})


@cache
def alert_channels() -> AlertChannels:
    """What this Lambda's environment has people told with, made once an instance."""
    settings = AlertSettings.of(os.environ)
    table = boto3.resource("dynamodb", config=_SLACK_CONFIG).Table(settings.threads_table)
    window, kept = settings.repeat_minutes * 60, (settings.keep_days + _WEEK) * _DAY
    topic, slack = settings.alert_topic, SlackSettings.of(os.environ)
    return AlertChannels(
        threads=Threads(table, window, kept, time.time),
        log=LogAlerts(logger),
        slack=_slack(slack),
        topic=Topic(boto3.client("sns", config=_SLACK_CONFIG), topic) if topic else None,
        has_buttons=bool(slack.slack_users),
    )


def _slack(settings: SlackSettings) -> SlackAlerts | None:
    if not settings.slack_token_secret:
        return None
    vault = boto3.client("secretsmanager", config=_SLACK_CONFIG)
    token = Secret(vault, settings.slack_token_secret, part=bot_token)
    client = WebClient(token.text(), timeout=10)
    if settings.slack_url:
        client.base_url = settings.slack_url
    return SlackAlerts(client, settings.slack_channel, token.after)


# The one place that wires the functions that bring warehouses along.


@cache
def glue() -> Refreshing:
    """Glue, as this Lambda's environment sets it up; made once an instance."""
    from functions.downstream.glue import Glue

    settings = GlueSettings.of(os.environ)
    client, s3 = (boto3.client(name, config=_CONFIG) for name in ("glue", "s3"))
    sqs = boto3.client("sqs", config=_CONFIG)
    warehouse = Glue(client, s3, settings.glue_database_prefix)
    return Refreshing(warehouse, GivenUp(sqs, settings.glue_dead_letters))


@cache
def snowflake() -> Refreshing:
    """Snowflake, as this Lambda's environment sets it up; made once an instance."""
    from functions.adapters.secrets import Secret
    from functions.downstream.refresh_lease import Marks
    from functions.downstream.snowflake import Snowflake

    settings = SnowflakeSettings.of(os.environ)
    sqs, vault = (boto3.client(name, config=_CONFIG) for name in ("sqs", "secretsmanager"))
    marks = boto3.resource("dynamodb", config=_CONFIG).Table(settings.snowflake_marks)
    warehouse = Snowflake(
        secret=Secret(vault, settings.snowflake_secret),
        marks=Marks(marks),
        lake_bucket=settings.lake_bucket,
        now=lambda: datetime.now(UTC),
        function_timeout=settings.function_timeout,
        tables=settings.tables,
    )
    return Refreshing(warehouse, GivenUp(sqs, settings.snowflake_dead_letters))
