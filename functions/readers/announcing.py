"""Telling readers of an ingestion's end: the warehouses' queues first, then EventBridge."""

from collections.abc import Iterable
from dataclasses import dataclass

from functions.readers.announcements import Announcement
from functions.readers.event_bus import EventBus
from functions.readers.queues import RefreshQueue
from functions.readers.refresh import Refresh


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
