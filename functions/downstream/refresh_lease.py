"""Record table positions and leases for a consumer that cannot store them itself.

A process needs a table's lease to refresh it; a lease ends by itself if its holder crashes. No
lease is given for a position older than the last one begun, whose outcome is uncertain.
"""

import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from boto3.dynamodb.conditions import Attr, ConditionBase

from functions.adapters.dynamodb import ConditionFailed, translated
from functions.model.messages.refresh import taken
from lakegate.errors import Transient

_UNAVAILABLE = "MARKS_UNAVAILABLE"


@dataclass(frozen=True)
class Lease:
    """The exclusive right of `holder` to refresh a table to `position`."""

    table: str
    position: int
    holder: str


class RefreshLeases:
    """The begun and done positions and the lease of each table, in a DynamoDB table.

    The key is `table`. `begun` and `done` are positions; `until` is when the lease of `holder`
    ends, in seconds since 1970. Names that differ only in case share an item, as they are equal to
    the consumer; it belongs to the table in `of`, which came first.
    """

    def __init__(self, table: Any) -> None:
        """Use boto3's DynamoDB Table resource."""
        self._table = table

    def lease(self, table: str, position: int, now: datetime, seconds: int) -> Lease | None:
        """Return the exclusive right to refresh a table for `seconds`.

        None where that position is done already, or a newer one was begun. Raises Permanent
        NAME_TAKEN where another table has the item; Transient LEASED while another process has the
        lease, and MARKS_UNAVAILABLE.
        """
        lease, second = Lease(table, position, uuid.uuid4().hex), int(now.timestamp())
        free = Attr("until").not_exists() | Attr("until").lte(second) | _held_by(lease)
        older = Attr("begun").not_exists() | Attr("begun").lte(position)
        behind = Attr("done").not_exists() | Attr("done").lt(position)
        own = Attr("of").not_exists() | Attr("of").eq(table)
        change = "SET #holder = :holder, #until = :until, #begun = :begun, #of = :of"
        values = {":holder": lease.holder, ":until": second + seconds, ":begun": position}
        try:
            self._change(table, change, free & older & behind & own, {**values, ":of": table})
        except ConditionFailed:
            if self._passed(table, position):
                return None
            raise _leased(table) from None
        return lease

    def done(self, lease: Lease) -> None:
        """Record that the table is at the position, and end the lease.

        Raises Transient LEASED where the lease has ended, and MARKS_UNAVAILABLE.
        """
        change = "SET #done = :done REMOVE #holder, #until"
        try:
            self._change(lease.table, change, _held_by(lease), {":done": lease.position})
        except ConditionFailed:
            raise _leased(lease.table) from None

    def free(self, lease: Lease) -> None:
        """End a lease after a refusal. Raises Transient MARKS_UNAVAILABLE."""
        with suppress(ConditionFailed):
            self._change(lease.table, "REMOVE #holder, #until", _held_by(lease), {})

    def _passed(self, table: str, position: int) -> bool:
        with translated(_UNAVAILABLE):
            answer = self._table.get_item(Key=_key(table), ConsistentRead=True)
        item = answer.get("Item", {})
        if item.get("of", table) != table:
            raise taken(table, item["of"], f"delete the item {table.lower()} of {self._table.name}")
        return item.get("done", 0) >= position or item.get("begun", 0) > position

    def _change(
        self, table: str, change: str, condition: ConditionBase, values: dict[str, Any]
    ) -> None:
        names = {word: word[1:] for word in change.replace(",", "").split() if word[0] == "#"}
        given = {"ExpressionAttributeValues": values} if values else {}
        with translated(_UNAVAILABLE):
            self._table.update_item(
                Key=_key(table),
                UpdateExpression=change,
                ConditionExpression=condition,
                ExpressionAttributeNames=names,
                **given,
            )


def _key(table: str) -> dict[str, str]:
    return {"table": table.lower()}


def _held_by(lease: Lease) -> ConditionBase:
    """Return the condition for the lease's holder, including boto3's own retries."""
    return Attr("holder").eq(lease.holder)


def _leased(table: str) -> Transient:
    message = f"another process is refreshing {table}: this refresh will be retried"
    return Transient("LEASED", message)
