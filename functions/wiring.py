"""Create all adapters from the environment."""

import os
import secrets
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from functions.adapters.all import Adapters
from functions.adapters.emr import Jobs
from functions.adapters.landing import Landing
from functions.adapters.ledger.ledger import Ledger
from functions.adapters.nessie import Catalog
from functions.adapters.s3 import Lake
from functions.adapters.secrets import Secret
from functions.adapters.sqs import (
    ActionQueue,
    AlertQueue,
    AnnouncementQueue,
    Backlog,
    DeadLetters,
    WorkQueue,
)
from functions.settings import Settings
from lakegate import times

if TYPE_CHECKING:
    from functions.adapters.iceberg.tables import Tables

CONFIG = Config(retries={"mode": "standard", "max_attempts": 4}, s3={"addressing_style": "path"})


@cache
def adapters() -> Adapters:
    """Return the adapters of this Lambda's environment, created once."""
    return connect(Settings.of(os.environ))


def adapters_of_batch() -> Adapters:
    """Return the adapters for a batch of messages, which list the contracts at most once.

    What a message of the batch is about landed before, so it finds the contracts of that moment.
    """
    usual = adapters()
    return replace(usual, lake=usual.lake.listed_once())


def connect(settings: Settings, nessie: str = "") -> Adapters:
    """Return the adapters for these settings; AWS's own variables select the account.

    `nessie` is the address of Nessie for this process where the settings' one cannot be reached.
    Job runs always get the settings' one.
    """
    nessie = nessie or settings.nessie_uri
    s3 = boto3.client("s3", config=CONFIG)
    sqs = boto3.client("sqs", config=CONFIG)
    dynamodb = boto3.resource("dynamodb", config=CONFIG)
    vault = boto3.client("secretsmanager", config=CONFIG)
    token = Secret(vault, settings.nessie_token_secret)
    return Adapters(
        settings=settings,
        landing=Landing(s3, *settings.landing_buckets),
        lake=Lake(
            s3, settings.lake_bucket, cache(lambda: _clean_up(settings, s3)), settings.limits
        ),
        ledger=Ledger(dynamodb.Table(settings.ledger_table), _now),
        catalog=Catalog(nessie, token),
        tables=cache(lambda: _tables(nessie, token, s3)),
        jobs=Jobs(boto3.client("emr-serverless", config=CONFIG), settings),
        uploads=Backlog(sqs, settings.upload_queue),
        work=WorkQueue(sqs, settings.work_queue),
        alerts=AlertQueue(sqs, settings.alert_queue, has_topic=bool(settings.alert_topic)),
        announcements=AnnouncementQueue(sqs, settings.announcement_queue),
        actions=ActionQueue(sqs, settings.action_queue),
        upload_dead_letters=DeadLetters(sqs, settings.upload_dead_letters),
        job_run_dead_letters=DeadLetters(sqs, settings.job_run_dead_letters),
        alert_dead_letters=DeadLetters(sqs, settings.alert_dead_letters),
        now=_now,
        token=lambda: secrets.token_hex(3),
    )


def _now() -> str:
    return times.text(datetime.now(UTC))


def _clean_up(settings: Settings, s3: Any) -> Any:
    """Return the S3 client that may delete in the lake bucket."""
    role = settings.clean_up_role_arn
    return assumed(role).client("s3", config=CONFIG) if role else s3


def assumed(role_arn: str) -> boto3.Session:
    """Return a session with the rights of a role that this process may take."""
    given = boto3.client("sts", config=CONFIG).assume_role(
        RoleArn=role_arn, RoleSessionName="lakegate"
    )["Credentials"]
    return boto3.Session(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])


def _tables(nessie_uri: str, token: Secret, s3: Any) -> "Tables":
    from functions.adapters.iceberg.tables import Tables  # two seconds, only for a rebase

    return Tables(nessie_uri, token, s3)
