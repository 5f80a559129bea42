"""Lambda: the queue of announcements. Notifies consumers of an ingestion's final state.

Outside the deployment's network, for EventBridge has no endpoint in it.
"""

import os
from functools import cache

import boto3

from functions.downstream.announce import EventBus, Readers, announce
from functions.downstream.queues import RefreshQueue
from functions.settings import ReaderSettings
from functions.sqs_handler import sqs_handler
from functions.wiring import CONFIG


@cache
def readers() -> Readers:
    """Whom this Lambda's environment has told of an ingestion's end, made once an instance."""
    settings = ReaderSettings.of(os.environ)
    sqs = boto3.client("sqs", config=CONFIG)
    events = boto3.client("events", config=CONFIG)
    queues = filter(None, (settings.glue_queue, settings.snowflake_queue))
    return Readers(
        bus=EventBus(events, settings.event_bus, settings.stage),
        warehouses=tuple(RefreshQueue(sqs, url) for url in queues),
    )


handler = sqs_handler(announce, readers)
