"""Bringing one warehouse to what was published, one refresh after the other."""

from dataclasses import dataclass
from typing import Protocol

from functions.readers.queues import GivenUp
from functions.readers.refresh import Refresh
from functions.telemetry import logger, metrics
from lakegate.errors import Permanent


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
