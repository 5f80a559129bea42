"""Change the intent of a large group by one item to which its members refer.

    intent-3c4d…: the intent that the members have by now, once it was changed; or that it is closed

The item of a member says what the group had in common when it was saved. While it is audited, the
item above, which has the same name but for its kind, says what has replaced that since. So the
files of a hundred groups get another intent by a hundred writes in one transaction. A member that
goes another way, and be it to main, closes the item in the same transaction, or before: from then
on no process changes the intent of a group as it was before.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from functions.adapters.dynamodb import as_read
from functions.adapters.ledger.groups import COMMON
from functions.model.ingestion import State
from functions.model.intent import Intent, SharedIntent


def intent_id(item: Mapping[str, Any]) -> str:
    """Return the id of the item with the intent of a stored member, "" where it has its own."""
    if COMMON not in item or item["state"] != State.AUDITED:
        return ""
    return f"intent-{item[COMMON].partition('-')[2]}"


def shared_intent(id_: str, intent: Mapping[str, Any]) -> SharedIntent:
    """Return what is known of an item of this module; `intent` is empty where there is none."""
    return SharedIntent(id_, int(intent.get("revision", 0)), "closed" in intent)


def moved(intent: Intent, base_hash: str, group_item: str, at: str) -> str:
    """Return the text of an intent; `group_item` has the ids of all whose rows it holds."""
    known = {"branch": intent.branch, "audited_hash": intent.hash, "base_hash": base_hash}
    return json.dumps({"fields": known, "group": group_item, "rebased": at})


def group_item(intent: Mapping[str, Any]) -> str:
    """Return the id of the item with the ids of the group, "" where the intent did not change."""
    return str(json.loads(intent["moved"])["group"]) if "moved" in intent else ""


def with_intent(whole: Mapping[str, Any], intent: Mapping[str, Any], ids: str) -> dict[str, Any]:
    """Return the whole item of a member with the intent that was found, and the ids as text."""
    known = json.loads(intent["moved"])
    times = json.loads(whole["times"]) | {"rebased": known["rebased"]}
    return {**whole, **known["fields"], "group": ids, "times": json.dumps(times)}


def closing(table: str, shared: SharedIntent) -> dict[str, Any]:
    """Return the update that closes an item unless another process changed it."""
    return _update(table, shared, "closed", True)


def moving(table: str, shared: SharedIntent, text: str) -> dict[str, Any]:
    """Return the update that changes the intent unless another process changed the item."""
    return _update(table, shared, "moved", text)


def _update(table: str, shared: SharedIntent, name: str, value: Any) -> dict[str, Any]:
    """Return the arguments of an update under the condition that the item is as it was read."""
    condition = as_read(shared.revision)
    values = {":value": value, ":next": shared.revision + 1}
    return {
        "TableName": table,
        "Key": {"id": shared.id},
        "UpdateExpression": f"SET {name} = :value, revision = :next",
        **condition,
        "ExpressionAttributeValues": condition.get("ExpressionAttributeValues", {}) | values,
    }


def open_intents(shared: Sequence[SharedIntent]) -> list[SharedIntent]:
    """Return those that can still be changed or closed, each once."""
    return list({each.id: each for each in shared if each.is_open}.values())
