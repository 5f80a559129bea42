"""Keep the ledger: one DynamoDB item per ingestion, saved by conditional writes."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

from functions.adapters.dynamodb import ConditionFailed, TransactionCancelled, as_read, translated
from functions.adapters.ledger.groups import is_large
from functions.adapters.ledger.intents import closing, intent_id, moved, moving, open_intents
from functions.adapters.ledger.items import own_revision, size, to_item, whole_item
from functions.adapters.ledger.notes import UNAVAILABLE, Moved
from functions.adapters.ledger.reads import Reads
from functions.model.ingestion import Ingestion, State
from functions.model.intent import Intent, SharedIntent

_MOST_FILES = 500  # that one commit publishes, and one process announces
MOST_WRITES = 100  # of a transaction (API reference, "TransactWriteItems")
_MOST_BYTES = 4 * 1024**2  # of a transaction's items, of which each has 400 KB at most
_ALWAYS_FIT = 10
_GROWTH = 6_000  # bytes that a group and the end add to an item at most
_PARALLEL = 8  # writes at once; the client has ten connections


class Ledger(Reads):
    """The ledger in a DynamoDB table (key `id`; see template.yaml for its indexes)."""

    def __init__(self, table: Any, now: Callable[[], str]) -> None:
        """Use boto3's DynamoDB Table resource; `now` returns the time as `times.text` writes it."""
        super().__init__(table)
        self._now = now

    def begin(self, ingestion: Ingestion) -> Ingestion:
        """Add a new ingestion, or return the existing one with its id."""
        self._groups.keep_once(whole_item(ingestion))
        begun = self._next(ingestion)
        try:
            with translated(UNAVAILABLE):
                self._table.put_item(Item=to_item(begun), **as_read(0))
        except ConditionFailed:
            return self.get(ingestion.id)
        return begun

    def save(self, ingestion: Ingestion) -> Ingestion:
        """Replace the revision that `ingestion` was made from; return it with its new revision.

        One without a revision is added. Raises Moved when another process saved or added the
        ingestion meanwhile: the decision was based on old data, so read and decide again.
        """
        self._groups.keep_once(whole_item(ingestion))
        if ingestion.shared_intent.is_open:
            return self._transact([ingestion])[0]
        return self._replace(ingestion)

    def save_all(self, ingestions: Sequence[Ingestion]) -> list[Ingestion]:
        """Save several that `fit_together`: all of them, or none and raise Moved."""
        if len(ingestions) == 1:
            return [self.save(ingestions[0])]  # a transaction takes twice the write units
        self._groups.keep(map(whole_item, ingestions))
        return self._transact(ingestions)

    def save_each(self, ingestions: Sequence[Ingestion]) -> list[Ingestion]:
        """Save those that no other process changed meanwhile, each alone; return them.

        A transaction takes twice the write units. After an error some of them may be saved.
        """
        self._groups.keep(map(whole_item, ingestions))
        changed = self._closed_by_others(ingestions)
        with ThreadPoolExecutor(_PARALLEL) as pool:
            unmoved = (each for each in ingestions if each.shared_intent.id not in changed)
            writes = [pool.submit(self._replace, each) for each in unmoved]
        saved = []
        for write in writes:
            with suppress(Moved):
                saved.append(write.result())
        return saved

    def leave(self, members: Sequence[Ingestion]) -> list[Ingestion]:
        """Close the intents of the groups that these are to leave; return them as they are then.

        Each is saved alone after that: else the first one's save would be news to the others. Raise
        Moved if another process changed an intent, or another member left, meanwhile.
        """
        changed = self._closed_by_others(members)
        if moved := [each.id for each in members if each.shared_intent.id in changed]:
            raise Moved(moved)
        return [_left(each) for each in members]

    def rebase(self, members: Sequence[Ingestion], intent: Intent, base_hash: str) -> None:
        """Give all that an intent holds another one, by one write; or raise Moved.

        Its branch was created off main at `base_hash`. Those that came to their intent as one large
        group take one write together; the others one each, and `fit_together`.
        """
        ids = tuple(each.id for each in _as_listed(members))
        at, group = self._now(), ids if len(ids) > 1 else ()
        alone = [each for each in members if not each.shared_intent.is_open]
        rebased = [each.rebased(at, intent, base_hash, group) for each in alone]
        self._groups.keep(map(whole_item, rebased))
        shared = open_intents([each.shared_intent for each in members])
        text = moved(intent, base_hash, self._groups.keep_ids(group), at) if shared else ""
        changes = {each.id: moving(self._table.name, each, text) for each in shared}
        self._write(changes, members, [*zip(rebased, map(self._next, rebased), strict=True)])

    def _transact(self, ingestions: Sequence[Ingestion]) -> list[Ingestion]:
        """Save them, and close the intents of the groups that they leave, in one transaction."""
        saved = [self._next(each) for each in ingestions]
        left = open_intents([each.shared_intent for each in ingestions])
        closes = {each.id: closing(self._table.name, each) for each in left}
        self._write(closes, ingestions, [*zip(ingestions, saved, strict=True)])
        return saved

    def _write(
        self,
        updates: Mapping[str, dict[str, Any]],
        affected: Sequence[Ingestion],
        puts: Sequence[tuple[Ingestion, Ingestion]],
    ) -> None:
        """Make updates of intents, by id, and replace ingestions, in one transaction.

        `affected` are all that these are about. Raise Moved, with the ids of those that moved.
        """
        writes = [{"Update": update} for update in updates.values()]
        writes += [{"Put": self._conditional_put(old, new)} for old, new in puts]
        try:
            with translated(UNAVAILABLE):
                self._table.meta.client.transact_write_items(TransactItems=writes)
        except TransactionCancelled as cancelled:
            names = [*updates, *(old.id for old, _ in puts)]
            failed = {name for name, at in zip(names, cancelled.failed, strict=True) if at}
            ids = [i.id for i in affected if failed & {i.id, i.shared_intent.id}]
            raise Moved(ids) from cancelled

    def _closed_by_others(self, ingestions: Sequence[Ingestion]) -> set[str]:
        """Close the intents of the groups that these leave; return those that others changed."""
        changed = set()
        for shared in open_intents([each.shared_intent for each in ingestions]):
            try:
                with translated(UNAVAILABLE):
                    self._table.meta.client.update_item(**closing(self._table.name, shared))
            except ConditionFailed:
                changed.add(shared.id)
        return changed

    def _replace(self, ingestion: Ingestion) -> Ingestion:
        """Save it by a client, which threads may share, as they may not a resource."""
        saved = self._next(ingestion)
        try:
            with translated(UNAVAILABLE):
                self._table.meta.client.put_item(**self._conditional_put(ingestion, saved))
        except ConditionFailed as refused:
            raise Moved([ingestion.id]) from refused
        return saved

    def _next(self, ingestion: Ingestion) -> Ingestion:
        """Return it as it will be read, if it is saved now."""
        old = ingestion.shared_intent
        saved = ingestion.but(
            revision=ingestion.revision + 1, saved_at=self._now(), shared_intent=SharedIntent()
        )
        if saved.state is not State.AUDITED or not is_large(saved.group):
            return saved
        id_ = intent_id(to_item(saved))
        if id_ != old.id:
            return saved.but(shared_intent=SharedIntent(id_))
        closed = SharedIntent(id_, old.revision + old.is_open, closed=True)
        return saved.but(shared_intent=closed, revision=saved.revision + closed.revision)

    def _conditional_put(self, old: Ingestion, new: Ingestion) -> dict[str, Any]:
        put = {"TableName": self._table.name, "Item": to_item(new)}
        return put | as_read(own_revision(old))


def _left(member: Ingestion) -> Ingestion:
    """Return a member as it is read after the intent of its group was closed."""
    shared = member.shared_intent
    if not shared.is_open:
        return member
    closed = replace(shared, revision=shared.revision + 1, closed=True)
    return member.but(shared_intent=closed, revision=member.revision + 1)


def _as_listed(members: Sequence[Ingestion]) -> list[Ingestion]:
    """Return them in the order of their next group: first the one that the index lists for all.

    Where they come to it by their intent alone, no item changes, and so the listed one stays.
    """
    listed = members[0].group[:1] if members[0].shared_intent.is_open else ()
    return sorted(members, key=lambda each: each.id not in listed)


class Room:
    """What is left of one commit's files, and of the one write to the ledger that they take."""

    def __init__(self) -> None:
        self._files, self._writes, self._bytes = _MOST_FILES, MOST_WRITES, _MOST_BYTES
        self._alone = 0

    def takes(self, members: Sequence[Ingestion]) -> bool:
        """Return whether there is room for all of these, who take it then."""
        alone = [each for each in members if not each.shared_intent.is_open]
        shared = open_intents([each.shared_intent for each in members])
        needed = sum(size(each) + _GROWTH for each in alone)
        are_few = self._alone + len(alone) <= _ALWAYS_FIT
        if len(members) > self._files or len(alone) + len(shared) > self._writes:
            return False
        if needed > self._bytes and not are_few:
            return False
        self._files -= len(members)
        self._writes -= len(alone) + len(shared)
        self._alone, self._bytes = self._alone + len(alone), self._bytes - needed
        return True


def fit_together(ingestions: Sequence[Ingestion]) -> bool:
    """Return whether one write can save these."""
    return Room().takes(ingestions)
