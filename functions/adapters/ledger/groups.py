"""The items of large groups: what all members have alike is stored once, and each is short.

    group-1a2b…: the ids of the members
    common-3c4d…: what else they have alike, such as their intent, and the name of the item above
    a member: the rest, and the name of the item above

With all of it, a member takes two to six kilobytes, and each started one is paid for at every write
of it, in the table and in each index. The two items are named by what they hold, so they never
change, and a process reads them once.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Any

from functions.adapters.dynamodb import together, translated
from functions.adapters.ledger.notes import UNAVAILABLE
from functions.model.contract_terms import ContractTerms
from lakegate import times
from lakegate.audit.report import CheckResult
from lakegate.errors import Transient
from lakegate.job.landing import report_key

_FEW = 2  # of whom the shared items cost more than they save
_REMEMBERED = 100  # items
COMMON, GROUP = "common", "group_item"  # the attributes that name the two items
# Whatever is not alike after all costs one more item.
_ALIKE = (
    *("bucket", "is_shared", "check_counts", "branch", "base_hash", "audited_hash", "merge_hash"),
    *(each.name for each in fields(ContractTerms)),
)
_MILLISECOND = timedelta(milliseconds=1)
_USUAL = {f.name: f.default for f in fields(CheckResult) if f.default is not MISSING}
_USUAL_CHECK = {"columns": []} | {
    name: value for name, value in _USUAL.items() if name not in ("samples", "query")
}


def is_large(group: Sequence[str]) -> bool:
    """Return whether the members of a group have items in common."""
    return len(group) > _FEW


def shared_items(whole: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the items that a member shares with others, in the order in which to write them."""
    group = {"id": _named("group", whole["group"]), "ids": whole["group"]}
    alike = {name: whole[name] for name in _ALIKE if name in whole} | {GROUP: group["id"]}
    text = json.dumps(alike, sort_keys=True)
    return group, {"id": _named("common", text), "alike": text}


def packed(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Return the short item of a member; `unpacked` returns the whole one."""
    item = {name: value for name, value in whole.items() if name not in (*_ALIKE, "group")}
    item[COMMON] = shared_items(whole)[1]["id"]
    gone = {
        name: _milliseconds(item["landed_at"], at) for name, at in json.loads(item["times"]).items()
    }
    checks = [
        {name: value for name, value in check.items() if not _is_usual(name, value)}
        for check in json.loads(item["checks"])
    ]
    item |= {"times": _compact(gone), "checks": _compact(checks)}
    if item.setdefault("report_key", "") == _usual_key(whole):
        del item["report_key"]
    return item


def unpacked(item: Mapping[str, Any], alike: Mapping[str, Any], group: str) -> dict[str, Any]:
    """Return the whole item of a member, with what all have alike and the ids as text."""
    since = item["landed_at"]
    gone = json.loads(item["times"]).items()
    checks = [_USUAL_CHECK | check for check in json.loads(item["checks"])]
    whole = {**alike, **item, "group": group}
    return (
        {"report_key": _usual_key(whole)}
        | whole
        | {
            "times": json.dumps({name: _moment(since, at) for name, at in gone}),
            "checks": json.dumps(checks),
        }
    )


class Groups:
    """The items that members of large groups share."""

    def __init__(self, table: Any) -> None:
        """Use boto3's DynamoDB Table resource of the ledger."""
        self._table = table
        self._lately: dict[str, str] = {}
        self._kept = lru_cache(_REMEMBERED)(self._put)

    def keep(self, wholes: Iterable[Mapping[str, Any]]) -> None:
        """Write the items that these share. Do so before an item of a member names them."""
        for id_, content in self._shared(wholes).items():
            self._put(id_, *content)

    def keep_once(self, whole: Mapping[str, Any]) -> None:
        """Do the same unless this process did it before."""
        for id_, content in self._shared([whole]).items():
            self._kept(id_, *content)

    def keep_ids(self, group: Sequence[str]) -> str:
        """Write the item with the ids of a group; return its id."""
        text = json.dumps(group)
        id_ = _named("group", text)
        self._kept(id_, "ids", text)
        return id_

    def ids(self, id_: str) -> str:
        """Return the ids in such an item, as text."""
        return self._texts({id_}, "ids")[id_]

    def wholes(self, items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the whole items of ingestions; what they share with others is read together."""
        texts = self._texts({item[COMMON] for item in items if COMMON in item}, "alike")
        alike = {id_: json.loads(text) for id_, text in texts.items()}
        ids = self._texts({each[GROUP] for each in alike.values()}, "ids")
        return [
            unpacked(item, (common := alike[item[COMMON]]), ids[common[GROUP]])
            if COMMON in item
            else dict(item)
            for item in items
        ]

    def _shared(self, wholes: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
        large = (whole for whole in wholes if is_large(json.loads(whole.get("group", "[]"))))
        items = [each for whole in large for each in shared_items(whole)]
        groups_first = sorted(items, key=lambda each: "ids" not in each)
        return {each.pop("id"): next(iter(each.items())) for each in groups_first}

    def _put(self, id_: str, name: str, text: str) -> None:
        with translated(UNAVAILABLE):
            self._table.put_item(Item={"id": id_, name: text})

    def _texts(self, ids: set[str], name: str) -> dict[str, str]:
        """Return the texts of items by their ids; those that were read lately are remembered."""
        texts = {id_: self._lately[id_] for id_ in ids & self._lately.keys()}
        texts |= self._read(ids - texts.keys(), name)
        self._lately = dict([*(self._lately | texts).items()][-_REMEMBERED:])
        return texts

    def _read(self, ids: set[str], name: str) -> dict[str, str]:
        several = together(self._table, sorted(ids), UNAVAILABLE, ConsistentRead=True)
        items = self._one(ids) if len(ids) == 1 else several
        texts = {str(item["id"]): str(item[name]) for item in items}
        for id_ in ids - texts.keys():
            message = f"the ledger lacks the item {id_}, which members of a group share"
            raise Transient(UNAVAILABLE, message)
        return texts

    def _one(self, ids: set[str]) -> Iterable[Mapping[str, Any]]:
        """Return the item of one id: who decides on one file may read nothing together."""
        with translated(UNAVAILABLE):
            answer = self._table.get_item(Key={"id": min(ids)}, ConsistentRead=True)
        return [answer["Item"]] if "Item" in answer else []


def _named(kind: str, text: str) -> str:
    return f"{kind}-{sha256(text.encode()).hexdigest()[:32]}"


def _is_usual(name: str, value: Any) -> bool:
    return name in _USUAL_CHECK and value == _USUAL_CHECK[name]


def _usual_key(item: Mapping[str, Any]) -> str:
    return report_key(item.get("table", ""), item["id"], int(item.get("attempt", 1)))


def _milliseconds(landed_at: str, time: str) -> int | str:
    """Return the milliseconds from landing to a time, or the text if it would not come back."""
    gone = datetime.fromisoformat(time).astimezone(UTC) - _parsed(landed_at)
    milliseconds = round(gone / _MILLISECOND)
    return milliseconds if _moment(landed_at, milliseconds) == time else time


def _moment(landed_at: str, gone: int | str) -> str:
    return gone if isinstance(gone, str) else times.text(_parsed(landed_at) + gone * _MILLISECOND)


def _parsed(time: str) -> datetime:
    return datetime.fromisoformat(time).astimezone(UTC)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
