"""The ledger's items that are no ingestions: search, slots, freshness, copies, …"""

import json
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, fields, replace
from hashlib import sha256
from typing import Any
from uuid import uuid4

from boto3.dynamodb.conditions import Attr

from functions.adapters.dynamodb import ConditionFailed, as_read, translated
from functions.model.notes.brought import Brought
from functions.model.notes.compactions import Compactions
from functions.model.notes.freshness import Freshness
from functions.model.notes.search import Search
from functions.model.notes.slot import Slot
from functions.model.notes.upkeep_note import Look, UpkeepNote
from lakegate.errors import Transient

# Ids of items.
_SEARCH, _FRESHNESS, _UPKEEP, _COMPACTIONS = "search", "freshness", "upkeep", "compactions"
# Characters of a note about all tables from which on it is packed: an item has 400 KB at most.
_LONG = 200_000
UNAVAILABLE = "LEDGER_UNAVAILABLE"


class Moved(Transient):
    """Another process changed some of the ingestions meanwhile; `ids` names them."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = frozenset(ids)
        message = f"another process changed these ingestions meanwhile: {', '.join(ids)}"
        super().__init__("LEDGER_MOVED", message)


class Claimed(Moved):
    """Another process has a piece of work, `until` then unless it claims it anew."""

    def __init__(self, name: str, until: str) -> None:
        super().__init__([name])
        self.until = until


class Notes:
    """What processes note in the ledger's table for each other."""

    def __init__(self, table: Any) -> None:
        """Use boto3's DynamoDB Table resource of the ledger."""
        self._table = table

    def search(self) -> Search | None:
        """Return how far the sweep's search has come; None before the first."""
        kept = self._kept(_SEARCH)
        return _search(kept) if kept else None

    def save_search(self, search: Search) -> None:
        """Save it. Raise Moved if another one was saved, or it was lost, since it was read."""
        try:
            with translated(UNAVAILABLE):
                self._table.put_item(
                    Item=_searched(search), ConditionExpression=Attr("token").eq(search.token)
                )
        except ConditionFailed as refused:
            raise Moved([_SEARCH]) from refused

    def begin_search(self, at: str) -> Search:
        """Begin to look up everything, whatever sweeps that are under way save later."""
        begun = _searched(Search.first(at))
        with translated(UNAVAILABLE):
            self._table.put_item(Item=begun)
        return _search(begun)

    def freshness(self) -> Freshness:
        """Return when tables last got files, as last saved; an empty one before the first save."""
        kept = self._kept(_FRESHNESS)
        if not kept:
            return Freshness()
        return Freshness.from_json(_unpacked(kept["known"]), int(kept["revision"]))

    def save_freshness(self, freshness: Freshness) -> None:
        """Save it. Raise Moved if another process saved it meanwhile."""
        self._put_revision(_FRESHNESS, {"known": _packed(freshness.to_json())}, freshness.revision)

    def upkeep(self) -> UpkeepNote:
        """Return what the daily upkeep noted last, an empty note before the first run."""
        kept = self._kept(_UPKEEP)
        if not kept:
            return UpkeepNote()
        look = Look(*json.loads(kept["look"]))
        note = UpkeepNote.from_json(_unpacked(kept["known"]))
        return replace(note, look=look, doubt=kept["doubt"], revision=int(kept["revision"]))

    def save_upkeep(self, note: UpkeepNote) -> None:
        """Save it. Raise Moved if another process saved it meanwhile."""
        look = json.dumps(astuple(note.look))
        item = {"known": _packed(note.to_json()), "look": look, "doubt": note.doubt}
        self._put_revision(_UPKEEP, item, note.revision)

    def compactions(self) -> Compactions:
        """Return the compactions under way, none before the first save."""
        kept = self._kept(_COMPACTIONS)
        known, last = kept.get("known"), kept.get("last", {})  # an older release keeps none
        return Compactions.from_json(known, last, int(kept["revision"])) if known else Compactions()

    def save_compactions(self, compactions: Compactions) -> None:
        """Save them. Raise Moved if another process saved them meanwhile."""
        item = {"known": compactions.to_json(), "last": dict(compactions.last)}
        self._put_revision(_COMPACTIONS, item, compactions.revision)

    def note_compacted(self, branch: str) -> None:
        """Note for ever that a compaction, by the name of its branch, is about to be published."""
        with translated(UNAVAILABLE):
            self._table.put_item(Item={"id": _compacted(branch)})

    def was_compacted(self, branch: str) -> bool:
        """Return whether `note_compacted` noted it."""
        return bool(self._kept(_compacted(branch)))

    def slot(self, number: int) -> Slot:
        """Return a slot of the shared runs, an unused one without an item."""
        kept = self._kept(_slot(number))
        names = (each.name for each in fields(Slot) if each.type is str)
        texts = {name: kept[name] for name in names if name in kept}
        return Slot(number, **texts, revision=int(kept.get("revision", 0)))

    def save_slot(self, slot: Slot) -> Slot:
        """Save a slot; return it with its new revision. Raise Moved if another process did."""
        self._put_revision(_slot(slot.number), asdict(slot), slot.revision)
        return replace(slot, revision=slot.revision + 1)

    def brought(self, table: str, source: str) -> Brought | None:
        """Return a table's last copy of a source object (`s3://bucket/key`); None without one."""
        kept = self._kept(_brought(table, source))
        if not kept:
            return None
        known = Brought.from_json(kept["known"])
        return replace(known, revision=int(kept["revision"]))

    def save_brought(self, table: str, source: str, copy: Brought) -> Brought:
        """Save it; return it with its new revision. Raise Moved if another backfill did."""
        self._put_revision(_brought(table, source), {"known": copy.to_json()}, copy.revision)
        return replace(copy, revision=copy.revision + 1)

    def claim(self, name: str, holder: str, now: str, until: str) -> None:
        """Claim a piece of work for a holder until then. Raise Claimed if another one has it."""
        free = Attr("id").not_exists() | Attr("until").lt(now) | Attr("holder").eq(holder)
        item = {"id": name, "holder": holder, "until": until}
        try:
            with translated(UNAVAILABLE):
                self._table.put_item(Item=item, ConditionExpression=free)
        except ConditionFailed as refused:
            raise Claimed(name, str(self._kept(name).get("until", ""))) from refused

    def release(self, name: str, holder: str) -> None:
        """End the holder's claim, if it still has it."""
        with suppress(Moved):
            self.claim(name, holder, now="", until="")

    def _kept(self, id_: str) -> dict[str, Any]:
        """Return an item as last saved, empty without one."""
        with translated(UNAVAILABLE):
            answer = self._table.get_item(Key={"id": id_}, ConsistentRead=True)
        return dict(answer.get("Item", {}))

    def _put_revision(self, id_: str, item: Mapping[str, Any], revision: int) -> None:
        """Save an item that is no ingestion, if it still has this revision, 0 for a new one."""
        item = {**item, "id": id_, "revision": revision + 1}
        try:
            with translated(UNAVAILABLE):
                self._table.put_item(Item=item, **as_read(revision))
        except ConditionFailed as refused:
            raise Moved([id_]) from refused


def _searched(search: Search) -> dict[str, Any]:
    return {**asdict(search), "id": _SEARCH, "token": uuid4().hex}


def _search(item: Mapping[str, Any]) -> Search:
    return Search(**{each.name: item[each.name] for each in fields(Search) if each.name in item})


def _packed(text: str) -> str | bytes:
    return text if len(text) < _LONG else zlib.compress(text.encode())


def _unpacked(kept: Any) -> str:
    return kept if isinstance(kept, str) else zlib.decompress(bytes(kept)).decode()


def _brought(table: str, source: str) -> str:
    """Return the id of the item about a source object, whose address may be longer than an id."""
    return f"brought-{sha256(json.dumps([table, source]).encode()).hexdigest()}"


def _slot(number: int) -> str:
    """Return the id of a slot's item, which is no ingestion."""
    return f"shared-{number}"


def _compacted(branch: str) -> str:
    """Return the id of the item that says that a compaction was to be published."""
    return f"compacted {branch}"
