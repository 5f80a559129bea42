"""Lambda: the queue of Glue's refreshes. Points Glue's tables to the published metadata."""

import os
from functools import cache

import boto3

from functions.downstream.announce import ConsumerRefresh, refresh
from functions.downstream.glue import Glue
from functions.downstream.queues import RefreshDeadLetters
from functions.settings import GlueSettings
from functions.sqs_handler import sqs_handler
from functions.wiring import CONFIG


@cache
def glue() -> ConsumerRefresh:
    """Return Glue as this Lambda's environment configures it, created once."""
    settings = GlueSettings.of(os.environ)
    client, s3 = (boto3.client(name, config=CONFIG) for name in ("glue", "s3"))
    sqs = boto3.client("sqs", config=CONFIG)
    consumer = Glue(client, s3, settings.glue_database_prefix)
    return ConsumerRefresh(consumer, RefreshDeadLetters(sqs, settings.glue_dead_letters))


handler = sqs_handler(refresh, glue)
