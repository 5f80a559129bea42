"""Lambda: the queue of Snowflake's refreshes. Points its tables to the published metadata."""

import os
from datetime import UTC, datetime
from functools import cache

import boto3

from functions.adapters.secrets import Secret
from functions.downstream.announce import ConsumerRefresh, refresh
from functions.downstream.queues import RefreshDeadLetters
from functions.downstream.refresh_lease import RefreshLeases
from functions.downstream.snowflake import Snowflake
from functions.settings import SnowflakeSettings
from functions.sqs_handler import sqs_handler
from functions.wiring import CONFIG


@cache
def snowflake() -> ConsumerRefresh:
    """Return Snowflake as this Lambda's environment configures it, created once."""
    settings = SnowflakeSettings.of(os.environ)
    sqs, vault = (boto3.client(name, config=CONFIG) for name in ("sqs", "secretsmanager"))
    table = boto3.resource("dynamodb", config=CONFIG).Table(settings.snowflake_marks)
    consumer = Snowflake(
        secret=Secret(vault, settings.snowflake_secret),
        leases=RefreshLeases(table),
        lake_bucket=settings.lake_bucket,
        now=lambda: datetime.now(UTC),
        function_timeout=settings.function_timeout,
        tables=settings.tables,
    )
    return ConsumerRefresh(consumer, RefreshDeadLetters(sqs, settings.snowflake_dead_letters))


handler = sqs_handler(refresh, snowflake)
