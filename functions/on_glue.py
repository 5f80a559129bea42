"""Lambda: the queue of Glue's refreshes. Points its tables to what was published."""

import os
from functools import cache

import boto3

from functions.downstream.announce import Refreshing, bring
from functions.downstream.glue import Glue
from functions.downstream.queues import GivenUp
from functions.settings import GlueSettings
from functions.sqs_handler import sqs_handler
from functions.wiring import CONFIG


@cache
def glue() -> Refreshing:
    """Glue, as this Lambda's environment sets it up; made once an instance."""
    settings = GlueSettings.of(os.environ)
    client, s3 = (boto3.client(name, config=CONFIG) for name in ("glue", "s3"))
    sqs = boto3.client("sqs", config=CONFIG)
    warehouse = Glue(client, s3, settings.glue_database_prefix)
    return Refreshing(warehouse, GivenUp(sqs, settings.glue_dead_letters))


handler = sqs_handler(bring, glue)
