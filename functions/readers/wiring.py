"""The one place that wires the functions that bring warehouses along."""

import os
from datetime import UTC, datetime
from functools import cache

import boto3
from botocore.config import Config

from functions.readers.queues import GivenUp
from functions.readers.refreshing import Refreshing
from functions.readers.settings import GlueSettings, SnowflakeSettings

_CONFIG = Config(retries={"mode": "standard", "max_attempts": 4}, s3={"addressing_style": "path"})


@cache
def glue() -> Refreshing:
    """Glue, as this Lambda's environment sets it up; made once an instance."""
    from functions.readers.glue import (
        Glue,  # two seconds, of which the other warehouses have no use
    )

    settings = GlueSettings.of(os.environ)
    client, s3 = (boto3.client(name, config=_CONFIG) for name in ("glue", "s3"))
    sqs = boto3.client("sqs", config=_CONFIG)
    warehouse = Glue(client, s3, settings.glue_database_prefix)
    return Refreshing(warehouse, GivenUp(sqs, settings.glue_dead_letters))


@cache
def snowflake() -> Refreshing:
    """Snowflake, as this Lambda's environment sets it up; made once an instance."""
    from functions.readers.marks import Marks
    from functions.readers.snowflake import Snowflake
    from functions.secret_store import Secret

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
