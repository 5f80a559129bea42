"""The ids of large groups, each an item of its own in the ledger.

All members of a group have the same ids. In each member's item, a hundred ids would make every
write of it four times as expensive, in the table and in each index.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

from functions.adapters.dynamodb import translated
from lakegate.errors import Transient

_INLINE = 10  # ids that a member's item has itself
_REMEMBERED = 100  # groups
_UNAVAILABLE = "LEDGER_UNAVAILABLE"


def is_large(group: Sequence[str]) -> bool:
    """Return whether an item of its own has the ids of a group."""
    return len(group) > _INLINE


def group_key(group: Sequence[str]) -> str:
    """Return the id of a group's item, which depends on nothing else than the group's ids."""
    return f"group-{sha256(json.dumps(group).encode()).hexdigest()[:32]}"


class Groups:
    """The items of groups. An item never changes, so a process reads it once."""

    def __init__(self, table: Any) -> None:
        """Use boto3's DynamoDB Table resource of the ledger."""
        self._table = table
        self.ids = lru_cache(_REMEMBERED)(self._ids)
        self.keep_once = lru_cache(_REMEMBERED)(self.keep)

    def keep(self, group: Sequence[str]) -> None:
        """Write the item of a group if it is large. Do so before an item of a member names it."""
        if is_large(group):
            with translated(_UNAVAILABLE):
                self._table.put_item(Item={"id": group_key(group), "ids": json.dumps(group)})

    def _ids(self, key: str) -> tuple[str, ...]:
        with translated(_UNAVAILABLE):
            found = self._table.get_item(Key={"id": key}, ConsistentRead=True)
        if "Item" not in found:
            message = f"the ledger lacks the item {key}, which names the members of a group"
            raise Transient(_UNAVAILABLE, message)
        return tuple(json.loads(found["Item"]["ids"]))
