"""Notify consumers of an ingestion's final state: refresh queues first, then EventBridge."""

import json
from dataclasses import dataclass
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from functions.downstream.queues import BodyQueue, RefreshDeadLetters, RefreshQueue
from functions.model.messages.announcement import Announcement
from functions.model.messages.refresh import Refresh
from functions.telemetry import logger, metrics
from lakegate.errors import Permanent, Transient
from lakegate.refusals import unavailable

SOURCE = "lakegate"


class EventBus:
    """One event bus of EventBridge."""

    def __init__(self, client: Any, name: str, stage: str) -> None:
        """Use boto3's `events` client; `stage` is the deployment's name."""
        self._client = client
        self._name = name
        self._stage = stage

    def put(self, announcement: Announcement) -> None:
        """Put the announcement on the bus. Raises Transient BUS_UNAVAILABLE.

        A refusal is retried as well: an announcement is well-formed, so only the bus or a
        permission can be missing, and an administrator can add it.
        """
        entry = {
            "EventBusName": self._name,
            "Source": SOURCE,
            "DetailType": f"Lakegate Ingestion {announcement.state.capitalize()}",
            "Detail": detail(announcement, self._stage),
        }
        try:
            answer = self._client.put_events(Entries=[entry])
        except (ClientError, BotoCoreError) as error:
            message = f"EventBridge did not accept an event for the bus {self._name!r}: {error}"
            raise unavailable(error, "BUS_UNAVAILABLE", message) from error
        if answer["FailedEntryCount"]:
            refused = answer["Entries"][0]
            why = f"{refused.get('ErrorCode')}: {refused.get('ErrorMessage')}"
            message = f"EventBridge refused an event for the bus {self._name!r}: {why}"
            raise Transient("BUS_UNAVAILABLE", message)


def detail(announcement: Announcement, stage: str) -> str:
    """Return the event's detail: the announcement and the deployment's stage."""
    return json.dumps({"stage": stage, **json.loads(announcement.text())}, ensure_ascii=False)


@dataclass(frozen=True)
class Consumers:
    """The consumers to notify; `queues` are the refresh queues that are set up.

    `lineage` takes announcements for OpenLineage, None if it is not set up.
    """

    bus: EventBus
    queues: tuple[RefreshQueue, ...]
    lineage: BodyQueue | None = None


def announce(consumers: Consumers, body: str) -> None:
    """Notify every consumer of the announcement in a message's body.

    On an error the message is delivered again, and consumers are notified again, which changes
    nothing in them. The queues come first, so an unavailable bus delays no refresh. Each consumer
    has its own queue, so an unavailable one delays no other.
    """
    if moved := _refresh_alone(body):
        _refresh_all(consumers, moved)
        return
    announcement = Announcement.read(body)
    if location := announcement.metadata_location:  # main has new metadata of the table
        _refresh_all(consumers, Refresh(announcement.table, announcement.position, location))
    if consumers.lineage:
        consumers.lineage.send(body)
    consumers.bus.put(announcement)


def _refresh_all(consumers: Consumers, moved: Refresh) -> None:
    for queue in consumers.queues:
        queue.send(moved)


def _refresh_alone(body: str) -> Refresh | None:
    """Return the refresh in a body; None for an announcement. No ingestion ended at upkeep."""
    try:
        return Refresh.read(body)
    except Permanent:
        return None


class Consumer(Protocol):
    """A consumer whose catalog points to main's newest metadata of each table."""

    def refresh(self, refresh: Refresh) -> bool:
        """Refresh a table; return False if it is up to date already.

        A refresh never moves a table back. Raises Transient where a retry may help, Permanent where
        it will not.
        """


@dataclass(frozen=True)
class ConsumerRefresh:
    """A consumer, and the dead-letter queue for the refreshes that it refuses permanently."""

    consumer: Consumer
    dead_letters: RefreshDeadLetters


def refresh(target: ConsumerRefresh, body: str) -> None:
    """Refresh the consumer as a message's body requests.

    A permanently refused refresh goes to the dead-letter queue at once, so that it blocks no newer
    one of its table. An alarm reports it, and it can be retried from there. Raises Transient.
    """
    try:
        request = Refresh.read(body)
        moved = target.consumer.refresh(request)
    except Permanent as refused:
        logger.error("a consumer refused a refresh", extra={"body": body, "why": str(refused)})
        target.dead_letters.keep(body)
        return
    logger.info("refreshed" if moved else "up to date already", extra={"table": request.table})
    metrics.add_metric("Refreshed", "Count", int(moved))
