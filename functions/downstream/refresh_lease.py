"""How far a warehouse's tables were brought, where the warehouse itself has no place to say it.

Whoever brings a table along has a lease of it, which ends by itself if its holder dies. Nobody has
one for what is older than anything that was begun: what became of that nobody knows for certain.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from boto3.dynamodb.conditions import Attr, ConditionBase
from botocore.exceptions import BotoCoreError, ClientError

from functions.model.announcement import taken
from lakegate.errors import Transient


@dataclass(frozen=True)
class Lease:
    """That nobody but its holder brings a table along; it is to be brought to `position`."""

    table: str
    position: int
    holder: str


class Marks:
    """Of each table, in a DynamoDB table (key `table`), what was begun and done, and who is at it.

    `begun` and `done` are positions, and `until` is when the lease of `holder` ends, in seconds
    since 1970. Tables whose names differ in capitals alone are one to a warehouse, and so they are
    here: it is for the one named in `of`, which came first.
    """

    def __init__(self, table: Any) -> None:
        """`table` is a boto3 DynamoDB Table resource."""
        self._table = table

    def lease(self, table: str, position: int, now: datetime, seconds: int) -> Lease | None:
        """Let nobody else bring a table along until it is done, or `seconds` have gone by.

        None where it was brought there already, or something newer was begun. Raises Permanent
        NAME_TAKEN where it is another table's; Transient LEASED while somebody else is at it, and
        MARKS_UNAVAILABLE.
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
        except _Refused:
            if self._passed(table, position):
                return None
            raise _leased(table) from None
        return lease

    def done(self, lease: Lease) -> None:
        """Note that the table was brought there, and end the lease.

        Raises Transient LEASED where it had ended already, and MARKS_UNAVAILABLE.
        """
        change = "SET #done = :done REMOVE #holder, #until"
        try:
            self._change(lease.table, change, _held_by(lease), {":done": lease.position})
        except _Refused:
            raise _leased(lease.table) from None

    def free(self, lease: Lease) -> None:
        """End a lease of which nothing goes on. Raises Transient MARKS_UNAVAILABLE."""
        with suppress(_Refused):
            self._change(lease.table, "REMOVE #holder, #until", _held_by(lease), {})

    def _passed(self, table: str, position: int) -> bool:
        with _translated():
            found = self._table.get_item(Key=_key(table), ConsistentRead=True)
        item = found.get("Item", {})
        if item.get("of", table) != table:
            raise taken(table, item["of"], f"delete the item {table.lower()} of {self._table.name}")
        return item.get("done", 0) >= position or item.get("begun", 0) > position

    def _change(
        self, table: str, change: str, condition: ConditionBase, values: dict[str, Any]
    ) -> None:
        names = {word: word[1:] for word in change.replace(",", "").split() if word[0] == "#"}
        given = {"ExpressionAttributeValues": values} if values else {}
        with _translated():
            self._table.update_item(
                Key=_key(table),
                UpdateExpression=change,
                ConditionExpression=condition,
                ExpressionAttributeNames=names,
                **given,
            )


def _key(table: str) -> dict[str, str]:
    return {"table": table.lower()}


class _Refused(Exception):
    """The condition of a write did not hold."""


def _held_by(lease: Lease) -> ConditionBase:
    """It is, also when boto3 asks again because the answer was lost."""
    return Attr("holder").eq(lease.holder)


def _leased(table: str) -> Transient:
    message = f"{table} is being brought along by another one; it will be tried again"
    return Transient("LEASED", message)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
            raise _Refused from error
        raise Transient("MARKS_UNAVAILABLE", f"DynamoDB refused: {error}") from error
    except BotoCoreError as error:
        raise Transient("MARKS_UNAVAILABLE", f"DynamoDB did not answer: {error}") from error
