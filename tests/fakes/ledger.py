"""The ledger in memory, with the real one's conditions, order and due times."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from operator import attrgetter

from functions.adapters.dynamodb import BATCH
from functions.adapters.ledger.groups import is_large
from functions.adapters.ledger.items import size
from functions.adapters.ledger.ledger import fit_together
from functions.adapters.ledger.notes import Claimed, Moved
from functions.adapters.ledger.reads import Outline, UnknownIngestion
from functions.model import queueing, steps
from functions.model.ingestion import Ingestion, State, landing
from functions.model.ingestion_summary import IngestionSummary
from functions.model.intent import Intent, SharedIntent
from functions.model.notes.brought import Brought
from functions.model.notes.compactions import Compactions
from functions.model.notes.freshness import Freshness
from functions.model.notes.search import Search
from functions.model.notes.slot import Slot
from functions.model.notes.upkeep_note import UpkeepNote
from lakegate.errors import Transient
from lakegate.job.landing import LandedObject
from tests.fakes.charges import FakeCharges

_LARGEST_TRANSACTION = 4 * 1024**2
_SAVED_AT = attrgetter("saved_at")
_LANDED_AT = attrgetter("landed.landed_at")


class FakeLedger(FakeCharges):
    """The ledger with every revision that was ever saved.

    `behind` gives, by id, the number of an ingestion's last writes that the indexes do not show
    yet; `newest` is the ingestion of the last write. `between` is called between two writes of one
    call, where others may write, and the process may die. `replaced` are the branches that were
    intents before a rebase. `listed` counts what was read of tables' queues, `versions_read` the
    versions of keys, `read_by_id` the ids that were asked for.
    """

    def __init__(self, now: Callable[[], str]) -> None:
        super().__init__()
        self._now = now
        self._revisions: defaultdict[str, list[Ingestion]] = defaultdict(list)
        self._lost: defaultdict[str, list[Ingestion]] = defaultdict(list)
        self._closed: set[str] = set()  # ids of shared intents
        self.behind: Counter[str] = Counter()
        self.newest = ""
        self.between: Callable[[], None] = lambda: None
        self.replaced: set[str] = set()
        self.listed = self.versions_read = self.read_by_id = 0
        self._search: Search | None = None
        self._searches = 0
        self._freshness = Freshness()
        self._claims: dict[str, tuple[str, str]] = {}
        self._upkeep = UpkeepNote()
        self._compactions = Compactions()
        self._compacted: set[str] = set()
        self._slots: dict[int, Slot] = {}
        self._brought: dict[tuple[str, str], Brought] = {}

    def begin(self, ingestion: Ingestion) -> Ingestion:
        if self._revisions[ingestion.id]:
            return self.get(ingestion.id)
        return self._keep(ingestion)

    def get(self, ingestion: str) -> Ingestion:
        if not self._revisions[ingestion]:
            raise UnknownIngestion(ingestion)
        return self._as_left(self._revisions[ingestion][-1])

    def save(self, ingestion: Ingestion) -> Ingestion:
        return self.save_all([ingestion])[0]

    def save_all(self, ingestions: Sequence[Ingestion]) -> list[Ingestion]:
        if len(ingestions) > 10 and sum(map(size, ingestions)) > _LARGEST_TRANSACTION:
            message = "DynamoDB refused: Transaction request cannot include larger items"
            raise Transient("LEDGER_UNAVAILABLE", message)
        if moved := [each.id for each in ingestions if self._has_moved(each)]:
            raise Moved(moved)
        self._closed |= _open_intents(ingestions)
        return [self._keep(each) for each in ingestions]

    def save_each(self, ingestions: Sequence[Ingestion]) -> list[Ingestion]:
        saved, unmoved = [], [each for each in ingestions if not self._is_left(each)]
        self._closed |= _open_intents(unmoved)
        for number, each in enumerate(unmoved):
            if number:
                self.between()
            if self._is_as_read(each):
                saved.append(self._keep(each))
        return saved

    def leave(self, members: Sequence[Ingestion]) -> list[Ingestion]:
        if moved := [each.id for each in members if self._is_left(each)]:
            raise Moved(moved)
        self._closed |= _open_intents(members)
        return [self._as_left(each) for each in members]

    def rebase(self, members: Sequence[Ingestion], intent: Intent, base_hash: str) -> None:
        if not fit_together(members):
            message = "DynamoDB refused: Member must have length less than or equal to 100"
            raise Transient("LEDGER_UNAVAILABLE", message)
        if moved := [each.id for each in members if self._has_moved(each)]:
            raise Moved(moved)
        group = tuple(each.id for each in members) if len(members) > 1 else ()
        at = self._now()
        self._closed |= _open_intents(members)  # to whoever read them before
        self.replaced |= {each.branch for each in members}
        for each in members:
            self._keep(each.rebased(at, intent, base_hash, group))

    def together(self, ids: Sequence[str]) -> list[Ingestion]:
        self.read_by_id += len(ids)
        return [self.get(id_) for id_ in ids if self._revisions[id_]]

    def read(self, ids: Iterable[str]) -> Iterator[Ingestion]:
        left = iter(ids)
        while some := list(islice(left, BATCH)):
            yield from self.together(some)

    def known(self, ids: list[str], *, consistent: bool = False) -> set[str]:
        return {id_ for id_ in ids if self._revisions[id_]}

    def unfinished(self, before: str) -> Iterator[Ingestion]:
        due = [i for i in self._index() if steps.unfinished(i) and i.saved_at < before]
        yield from sorted(due, key=_LANDED_AT)

    def due_landings(self, before: str) -> list[str]:
        due = [i.landed.landed_at for i in self._index() if steps.unfinished(i)]
        return sorted(at for at in due if at < before)

    def needs_recording(self) -> Iterator[Ingestion]:
        yield from sorted((i for i in self._index() if steps.needs_recording(i)), key=_SAVED_AT)

    def silent(self, since: str) -> Iterator[Ingestion]:
        found = [i for i in self._index() if steps.is_silent(i) and not steps.needs_recording(i)]
        yield from sorted((i for i in found if i.saved_at > since), key=_SAVED_AT)

    def in_state(self, state: State) -> Iterator[Ingestion]:
        yield from [i for i in self._index() if i.state is state]

    def landed(self, since: str, until: str) -> Iterator[IngestionSummary]:
        found = [b for b in map(IngestionSummary.of, self._index()) if since <= b.landed_at < until]
        yield from sorted(found, key=lambda b: b.landed_at, reverse=True)

    def open_failures(self) -> Iterator[IngestionSummary]:
        found = [brief for brief in map(IngestionSummary.of, self._index()) if brief.is_open]
        yield from sorted(found, key=lambda b: b.landed_at)

    def waiting(self, table: str, until: str = "") -> list[Ingestion]:
        found = [i for i in self._index() if queueing.is_waiting(i) and table in i.tables]
        kept = [i for i in found if i.landed.landed_at <= (until or "9") or _is_put_first(i)]
        self.listed += len(kept)
        return sorted(kept, key=_LANDED_AT)

    def waiting_in_order(self, table: str, since: str = "") -> Iterator[Ingestion]:
        found = [i for i in self._index() if queueing.is_waiting(i) and i.table == table]
        for each in sorted(found, key=landing):
            if each.landed.landed_at >= since and not each.parts:
                self.listed += 1
                yield each

    def first_waiting(self, table: str, most: int) -> list[Ingestion]:
        return list(islice(self.waiting_in_order(table), most))

    def same_content(self, ingestion: Ingestion) -> Iterator[Ingestion]:
        content = _content(ingestion.landed)
        same = [i for i in self._index() if content[0] and _content(i.landed) == content]
        others = (i for i in same if i.id != ingestion.id)
        earliest = sorted(others, key=lambda i: i.landed.landed_at)
        yield from self.together([i.id for i in earliest])

    def versions(self, landed: LandedObject) -> Iterator[Ingestion]:
        same = [i for i in self._index() if _place(i.landed) == _place(landed)]
        for each in sorted(same, key=_LANDED_AT, reverse=True):
            self.versions_read += 1
            yield self.get(each.id)

    def all(self) -> Iterator[Ingestion]:
        known = [revisions[-1] for revisions in self._revisions.values() if revisions]
        yield from map(self._as_left, known)

    def outlines(self) -> Iterator[Outline]:
        for each in self.all():
            yield Outline(each.id, each.state, each.saved_at, steps.unfinished(each))

    def search(self) -> Search | None:
        return self._search

    def save_search(self, search: Search) -> None:
        if not self._search or self._search.token != search.token:
            raise Moved(["search"])
        self._search = self._named(search)

    def begin_search(self, at: str) -> Search:
        self._search = self._named(Search.first(at))
        return self._search

    def _named(self, search: Search) -> Search:
        self._searches += 1
        return replace(search, token=str(self._searches))

    def freshness(self) -> Freshness:
        return self._freshness

    def save_freshness(self, freshness: Freshness) -> None:
        if self._freshness.revision != freshness.revision:
            raise Moved(["freshness"])
        self._freshness = replace(freshness, revision=freshness.revision + 1)

    def claim(self, name: str, holder: str, now: str, until: str) -> None:
        by, end = self._claims.get(name, (holder, ""))
        if by != holder and end >= now:
            raise Claimed(name, end)
        self._claims[name] = (holder, until)

    def release(self, name: str, holder: str) -> None:
        with suppress(Moved):
            self.claim(name, holder, now="", until="")

    def upkeep(self) -> UpkeepNote:
        return self._upkeep

    def save_upkeep(self, note: UpkeepNote) -> None:
        if self._upkeep.revision != note.revision:
            raise Moved(["upkeep"])
        self._upkeep = replace(note, revision=note.revision + 1)

    def brought(self, table: str, source: str) -> Brought | None:
        return self._brought.get((table, source))

    def save_brought(self, table: str, source: str, copy: Brought) -> Brought:
        known = self.brought(table, source)
        if copy.revision != (known.revision if known else 0):
            raise Moved([f"brought {source}"])
        self._brought[table, source] = replace(copy, revision=copy.revision + 1)
        return self._brought[table, source]

    def forget_copies(self) -> None:
        """Forget what backfills brought, as an older release kept none of it."""
        self._brought.clear()

    def compactions(self) -> Compactions:
        return self._compactions

    def save_compactions(self, compactions: Compactions) -> None:
        if self._compactions.revision != compactions.revision:
            raise Moved(["compactions"])
        self._compactions = replace(compactions, revision=compactions.revision + 1)

    def note_compacted(self, branch: str) -> None:
        self._compacted.add(branch)

    def was_compacted(self, branch: str) -> bool:
        return branch in self._compacted

    def slot(self, number: int) -> Slot:
        return self._slots.get(number, Slot(number))

    def save_slot(self, slot: Slot) -> Slot:
        if self.slot(slot.number).revision != slot.revision:
            raise Moved([f"shared-{slot.number}"])
        saved = replace(slot, revision=slot.revision + 1)
        self._slots[slot.number] = saved
        return saved

    def forget_search(self) -> None:
        """Lose how far the search has come, as a ledger does that is restored from a backup."""
        self._search = None

    def lose(self, *ids: str) -> None:
        """Delete ingestions without a trace, or the whole ledger if none is named."""
        if not ids:
            self._search = None
            self._freshness = Freshness()
            self._upkeep = UpkeepNote()
            self._compactions = Compactions()
            self._compacted.clear()
            self._slots.clear()
            self._brought.clear()
        for id_ in ids or tuple(self._revisions):
            self._lost[id_] += self._revisions.pop(id_, [])

    @property
    def has_lost(self) -> bool:
        """Return whether anything was ever lost."""
        return bool(self._lost)

    def was_lost(self, ingestion: str) -> bool:
        """Return whether it was ever lost."""
        return ingestion in self._lost

    def history(self, ingestion: str) -> list[Ingestion]:
        """Return every revision of an ingestion, lost ones included, oldest first."""
        return self._lost.get(ingestion, []) + self._revisions[ingestion]

    def _index(self) -> Iterator[Ingestion]:
        """Yield each ingestion as the indexes show it."""
        for id_, revisions in self._revisions.items():
            if len(revisions) > self.behind[id_]:
                yield self._as_left(revisions[-1 - self.behind[id_]])

    def _has_moved(self, ingestion: Ingestion) -> bool:
        return self._is_left(ingestion) or not self._is_as_read(ingestion)

    def _is_left(self, ingestion: Ingestion) -> bool:
        """Return whether another member has left its group since it was read."""
        return ingestion.shared_intent.is_open and ingestion.shared_intent.id in self._closed

    def _as_left(self, member: Ingestion) -> Ingestion:
        if not self._is_left(member):
            return member
        return member.but(shared_intent=replace(member.shared_intent, closed=True))

    def _is_as_read(self, ingestion: Ingestion) -> bool:
        revisions = self._revisions[ingestion.id]
        return ingestion.revision == (revisions[-1].revision if revisions else 0)

    def _keep(self, ingestion: Ingestion) -> Ingestion:
        landed = ingestion.landed
        if not landed.landed_at:
            raise Transient("LEDGER_UNAVAILABLE", "DynamoDB refused: landed_at is a key, and empty")
        saved = ingestion.but(
            revision=ingestion.revision + 1,
            saved_at=self._now(),
            shared_intent=_shared_intent(ingestion),
        )
        self._revisions[ingestion.id].append(saved)
        self.newest = saved.id
        return saved


def _shared_intent(saved: Ingestion) -> SharedIntent:
    has_one = saved.state is State.AUDITED and is_large(saved.group)
    return SharedIntent(f"intent-{saved.intent}" if has_one else "")


def _open_intents(ingestions: Sequence[Ingestion]) -> set[str]:
    return {each.shared_intent.id for each in ingestions if each.shared_intent.is_open}


def _content(landed: LandedObject) -> tuple[str, int]:
    return landed.etag, landed.size


def _place(landed: LandedObject) -> tuple[str, str]:
    return landed.bucket, landed.key


def _is_put_first(waiting: Ingestion) -> bool:
    return bool(waiting.parts or waiting.change or waiting.reaudit_base or waiting.turn)
