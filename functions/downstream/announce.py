"""Telling readers of an ingestion's end: the warehouses' queues first, then EventBridge."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from functions.downstream.queues import GivenUp, RefreshQueue
from functions.model.announcement import Announcement, Refresh
from functions.telemetry import logger, metrics
from lakegate.errors import Permanent, Transient

# EventBridge: announcements as events that anybody may put a rule on.

SOURCE = "lakegate"


class EventBus:
    """One event bus."""

    def __init__(self, client: Any, name: str, stage: str) -> None:
        """`client` is boto3's `events` client; `stage` is the deployment's name."""
        self._client = client
        self._name = name
        self._stage = stage

    def put(self, announcement: Announcement) -> None:
        """Put the announcement on the bus. Raises Transient BUS_UNAVAILABLE.

        Also what EventBridge refuses is tried again: an announcement is well-formed, so only
        the bus or a right can be missing, and people can add them.
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
            message = f"EventBridge did not take an event for {self._name!r}: {error}"
            raise Transient("BUS_UNAVAILABLE", message) from error
        if answer["FailedEntryCount"]:
            refused = answer["Entries"][0]
            why = f"{refused.get('ErrorCode')}: {refused.get('ErrorMessage')}"
            message = f"EventBridge refuses an event for {self._name!r}: {why}"
            raise Transient("BUS_UNAVAILABLE", message)


def detail(announcement: Announcement, stage: str) -> str:
    """The event's detail: the announcement, and which deployment makes it."""
    return json.dumps({"stage": stage, **json.loads(announcement.text())}, ensure_ascii=False)


@dataclass(frozen=True)
class Readers:
    """Who is told: `warehouses` are the queues of those that are set up."""

    bus: EventBus
    warehouses: tuple[RefreshQueue, ...]


def announce(readers: Readers, body: str) -> None:
    """Tell every reader of the announcement in a message's body.

    Raises what they raise, and the message comes again: those that were told are told once more,
    which changes nothing in a warehouse. So a bus that refuses holds up no warehouse, and a
    warehouse that is away, which has a queue of its own, nobody at all.
    """
    told = Announcement.read(body)
    for refresh in _refreshes(told):
        for warehouse in readers.warehouses:
            warehouse.send(refresh)
    readers.bus.put(told)


def _refreshes(told: Announcement) -> Iterable[Refresh]:
    """What warehouses are asked for: nothing where main did not move, or has no such table now."""
    if told.metadata_location:
        yield Refresh(told.table, told.position, told.metadata_location)


# Bringing one warehouse to what was published, one refresh after the other.


class Warehouse(Protocol):
    """Somebody else's catalog that keeps a pointer to main's newest metadata of a table."""

    def refresh(self, refresh: Refresh) -> bool:
        """Bring a table there, unless it is as far already: then nothing is done, and False told.

        It is never brought back. Raises Transient where trying again may help, Permanent where it
        will not.
        """


@dataclass(frozen=True)
class Refreshing:
    """A warehouse, and where its refreshes wait that it refuses for good."""

    warehouse: Warehouse
    given_up: GivenUp


def bring(refreshing: Refreshing, body: str) -> None:
    """Have the warehouse brought to where the refresh in a message's body says.

    What is refused for good goes to the dead-letter queue at once: it holds up no newer refresh of
    its table, people are told by an alarm, and they can have it tried again. Raises Transient.
    """
    try:
        refresh = Refresh.read(body)
        moved = refreshing.warehouse.refresh(refresh)
    except Permanent as refused:
        logger.error("a refresh is given up", extra={"body": body, "why": str(refused)})
        refreshing.given_up.keep(body)
        return
    logger.info("refreshed" if moved else "was as far already", extra={"table": refresh.table})
    metrics.add_metric("Refreshed", "Count", int(moved))
