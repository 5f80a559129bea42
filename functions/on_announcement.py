"""Lambda: the queue of announcements. Notifies consumers of an ingestion's final state.

It runs outside the deployment's network, which has no endpoint for EventBridge.
"""

import os
from functools import cache

import boto3

from functions.downstream.announce import Consumers, EventBus, announce
from functions.downstream.queues import BodyQueue, RefreshQueue
from functions.settings import ConsumerSettings
from functions.sqs_handler import sqs_handler
from functions.wiring import CONFIG


@cache
def consumers() -> Consumers:
    """Return the consumers of this Lambda's environment, created once."""
    settings = ConsumerSettings.of(os.environ)
    sqs = boto3.client("sqs", config=CONFIG)
    events = boto3.client("events", config=CONFIG)
    queues = filter(None, (settings.glue_queue, settings.snowflake_queue))
    return Consumers(
        bus=EventBus(events, settings.event_bus, settings.stage),
        queues=tuple(RefreshQueue(sqs, url) for url in queues),
        lineage=BodyQueue(sqs, settings.lineage_queue) if settings.lineage_queue else None,
    )


handler = sqs_handler(announce, consumers)
