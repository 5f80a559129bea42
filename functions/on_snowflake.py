"""Lambda: the queue of Snowflake's refreshes. Has its tables read what was published."""

import os
from datetime import UTC, datetime
from functools import cache

import boto3

from functions.adapters.secrets import Secret
from functions.downstream.announce import Refreshing, bring
from functions.downstream.queues import GivenUp
from functions.downstream.refresh_lease import Marks
from functions.downstream.snowflake import Snowflake
from functions.settings import SnowflakeSettings
from functions.sqs_handler import sqs_handler
from functions.wiring import CONFIG


@cache
def snowflake() -> Refreshing:
    """Snowflake, as this Lambda's environment sets it up; made once an instance."""
    settings = SnowflakeSettings.of(os.environ)
    sqs, vault = (boto3.client(name, config=CONFIG) for name in ("sqs", "secretsmanager"))
    marks = boto3.resource("dynamodb", config=CONFIG).Table(settings.snowflake_marks)
    warehouse = Snowflake(
        secret=Secret(vault, settings.snowflake_secret),
        marks=Marks(marks),
        lake_bucket=settings.lake_bucket,
        now=lambda: datetime.now(UTC),
        function_timeout=settings.function_timeout,
        tables=settings.tables,
    )
    return Refreshing(warehouse, GivenUp(sqs, settings.snowflake_dead_letters))


handler = sqs_handler(bring, snowflake)
