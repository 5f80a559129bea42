"""Read the ledger: ingestions by id, and what its indexes list."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import chain, groupby, islice
from typing import Any, NamedTuple

from boto3.dynamodb.conditions import Attr, Key

from functions.adapters.dynamodb import BATCH, together, translated
from functions.adapters.ledger.charges import Charges
from functions.adapters.ledger.groups import Groups
from functions.adapters.ledger.intents import group_item, intent_id, shared_intent, with_intent
from functions.adapters.ledger.items import BATCHES, CLOSED, SILENT, from_item, require_known
from functions.adapters.ledger.notes import UNAVAILABLE
from functions.model import queueing, steps
from functions.model.ingestion import ALERTED, IN_FLIGHT, Ingestion, State, landing
from functions.model.ingestion_summary import IngestionSummary
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject

# In the queue of a table, what may come before others that landed earlier.
_PUT_FIRST = (
    Attr("change").exists() | Attr("reaudit_base").exists() | Attr("times").contains('"published"')
)
_NEWEST_FIRST: dict[str, Any] = {"ScanIndexForward": False}


class Outline(NamedTuple):
    """What of an ingestion tells whether to read it. A step is due if it `is_unfinished`."""

    id: str
    state: State
    saved_at: str
    is_unfinished: bool


class UnknownIngestion(LakegateError):
    """The ledger has no ingestion with this id."""

    def __init__(self, ingestion: str) -> None:
        super().__init__("UNKNOWN_INGESTION", f"the ledger has no ingestion {ingestion!r}")


class Reads(Charges):
    """What the ledger has. Reads by id are consistent; an index may lag behind."""

    def __init__(self, table: Any) -> None:
        """Use boto3's DynamoDB Table resource."""
        super().__init__(table)
        self._groups = Groups(table)

    def get(self, ingestion: str) -> Ingestion:
        """Return the ingestion as last saved. Raises UnknownIngestion."""
        item = self._kept(ingestion)
        if not item:
            raise UnknownIngestion(ingestion)
        return self._ingestions([item])[0]

    def together(self, ids: Sequence[str]) -> list[Ingestion]:
        """Return those of these ingestions that the ledger has, as last saved, in order."""
        items = self._batches(ids, ConsistentRead=True)
        by_id = {each.id: each for each in self._ingestions(items)}
        return [by_id[id_] for id_ in ids if id_ in by_id]

    def read(self, ids: Iterable[str]) -> Iterator[Ingestion]:
        """Yield those of these ingestions that the ledger has, in order, some at a time."""
        left = iter(ids)
        while some := list(islice(left, BATCH)):
            yield from self.together(some)

    def known(self, ids: list[str], *, consistent: bool = False) -> set[str]:
        """Return those of `ids` that the ledger has.

        An ingestion added a moment ago may be missing, unless `consistent`, which costs twice as
        much.
        """
        read = {"ConsistentRead": True} if consistent else {}
        return {str(item["id"]) for item in self._batches(ids, ProjectionExpression="id", **read)}

    def unfinished(self, before: str) -> Iterator[Ingestion]:
        """Yield ingestions with a step still due, last saved before `before` (ISO 8601).

        The earliest landing comes first. An ingestion added a moment ago may be missing.
        """
        ingestions = self._listed("due", Key("unfinished").eq("yes"))
        return (each for each in ingestions if steps.unfinished(each) and each.saved_at < before)

    def due_landings(self, before: str) -> list[str]:
        """Return when each unfinished ingestion landed that landed before a time, earliest first.

        Times are ISO 8601 in UTC. An ingestion added a moment ago may be missing.
        """
        due = Key("unfinished").eq("yes") & Key("landed_at").lt(before)
        items = self._index("due", due, ProjectionExpression="landed_at")
        return [str(each["landed_at"]) for each in items]

    def needs_recording(self) -> Iterator[Ingestion]:
        """Yield finished ingestions whose results main's tables may lack, earliest save first.

        An ingestion saved a moment ago may be missing.
        """
        return self._unrecorded(Key("unrecorded").eq("yes"))

    def silent(self, since: str) -> Iterator[Ingestion]:
        """Yield ingestions that ended without a report and were saved since then (ISO 8601).

        An ingestion saved a moment ago may be missing.
        """
        return self._unrecorded(Key("unrecorded").eq(SILENT) & Key("saved_at").gt(since))

    def in_state(self, state: State) -> Iterator[Ingestion]:
        """Yield the ingestions in one state, in no order.

        Published and ignored ones, which are rarely asked for, are found by reading all.
        """
        if state in ALERTED:
            return self._listed("failed", Key("state").eq(state.value))
        if state in IN_FLIGHT:
            return (each for each in self.unfinished("9999") if each.state is state)
        return self._pages(
            self._items(self._table.scan, FilterExpression=Attr("state").eq(state.value))
        )

    def landed(self, since: str, until: str) -> Iterator[IngestionSummary]:
        """Yield what landed from `since` to before `until` (ISO 8601, UTC), newest first.

        An ingestion saved a moment ago may be missing.
        """
        for day in _days_back(since, until):
            during = Key("landed_day").eq(day) & Key("landed_at").between(max(since, day), until)
            items = self._index("by_day", during, **_NEWEST_FIRST, ProjectionExpression="brief")
            summaries = (IngestionSummary.from_json(item["brief"]) for item in items)
            yield from (each for each in summaries if each.landed_at < until)

    def open_failures(self) -> Iterator[IngestionSummary]:
        """Yield the failed ingestions that wait for a decision, oldest landing first."""
        # Closed items of older releases have no mark; items lack what has its default.
        unsettled = Attr("discarded").not_exists() & Attr("superseded_by").not_exists()
        wanted = {"FilterExpression": unsettled, "ProjectionExpression": "brief"}
        undecided = Key("reason_code").lt(CLOSED)
        by_state = (
            self._index("failed", Key("state").eq(each.value) & undecided, **wanted)
            for each in ALERTED
        )
        items = chain.from_iterable(by_state)
        open_ = (IngestionSummary.from_json(item["brief"]) for item in items)
        yield from sorted(open_, key=lambda each: each.landed_at)

    def waiting(self, table: str, until: str = "") -> list[Ingestion]:
        """Return the audited ingestions of a table, and those with priority, in no order.

        Batches with a file of the table are included. With `until` (ISO 8601) these are, of the
        files that landed later, only those that may come first all the same: many may be held.
        The index may lag behind.
        """
        queued = (*self._queue_until(table, until), *self._queue(BATCHES))
        return [each for each in queued if queueing.is_waiting(each) and table in each.tables]

    def waiting_in_order(self, table: str, since: str = "") -> Iterator[Ingestion]:
        """Yield those in a table's queue, in their order of landing, as far as they are asked for.

        With `since` these are the ones that landed then or later. Batches are not among them. The
        index may lag behind.
        """
        listed = self._queue(table, Key("landed_at").gte(since) if since else None)
        for _, same in groupby(listed, key=lambda each: each.landed.landed_at):
            yield from filter(queueing.is_waiting, sorted(same, key=landing))

    def first_waiting(self, table: str, most: int) -> list[Ingestion]:
        """Return at most so many of those in a table's queue, the earliest landing first.

        Batches are not among them. The index may lag behind.
        """
        condition = Key("queue").eq(table)
        with translated(UNAVAILABLE):
            page = self._table.query(
                IndexName="waiting", KeyConditionExpression=condition, Limit=most
            )
        return [each for each in self._ingestions(page["Items"]) if queueing.is_waiting(each)]

    def same_content(self, ingestion: Ingestion) -> Iterator[Ingestion]:
        """Yield other ingestions of objects with its etag and size, earliest landing first.

        An ingestion added a moment ago may be missing.
        """
        if not ingestion.landed.etag:
            return
        etag, named = Key("etag").eq(ingestion.landed.etag), {"#size": "size"}
        wanted = {"ProjectionExpression": "id, #size", "ExpressionAttributeNames": named}
        index = self._index("by_content", etag, **wanted)
        ids = (i["id"] for i in index if i["size"] == ingestion.landed.size)
        yield from self.read(id_ for id_ in ids if id_ != ingestion.id)

    def versions(self, landed: LandedObject) -> Iterator[Ingestion]:
        """Yield the ingestions of a landed object's key, newest landing first, as last saved.

        They are read some at a time, as a key may be written anew for years. An ingestion added a
        moment ago may be missing.
        """
        index = self._index("by_key", Key("key").eq(landed.key), **_NEWEST_FIRST)
        for each in self.read(item["id"] for item in index):
            if each.landed.bucket == landed.bucket:
                yield each

    def all(self) -> Iterator[Ingestion]:
        """Yield every ingestion, in no order."""
        return self._pages(self._items(self._table.scan, FilterExpression=Attr("state").exists()))

    def outlines(self) -> Iterator[Outline]:
        """Yield the outline of every ingestion, in no order: of millions in minutes."""
        items = self._items(
            self._table.scan,
            FilterExpression=Attr("state").exists(),
            ProjectionExpression="id, #state, saved_at, unfinished, #schema",
            ExpressionAttributeNames={"#state": "state", "#schema": "schema"},
        )
        for item in items:
            require_known(item)
            yield Outline(item["id"], State(item["state"]), item["saved_at"], "unfinished" in item)

    def _listed(self, index: str, condition: Any) -> Iterator[Ingestion]:
        """Yield what an index lists, as last saved."""
        return self.read(key["id"] for key in self._index(index, condition))

    def _unrecorded(self, condition: Any) -> Iterator[Ingestion]:
        return self._pages(self._index("unrecorded", condition))

    def _queue_until(self, table: str, until: str) -> Iterator[Ingestion]:
        if not until:
            return self._queue(table)
        at = Key("landed_at")
        later = self._queue(table, at.gt(until), FilterExpression=_PUT_FIRST)
        return chain(self._queue(table, at.lte(until)), later)

    def _queue(self, queue: str, landed: Any = None, **which: Any) -> Iterator[Ingestion]:
        condition = Key("queue").eq(queue)
        found = self._index("waiting", condition & landed if landed else condition, **which)
        return self._pages(found)

    def _ingestions(self, items: Iterable[dict[str, Any]]) -> list[Ingestion]:
        """Return the ingestions of stored items, with the intents that groups have by now.

        These are read after the items: so whoever left a group before is known to have closed it.
        """
        items = list(items)
        for item in items:
            require_known(item)
        intents = self._batches([*filter(None, map(intent_id, items))], ConsistentRead=True)
        known = {each["id"]: each for each in intents}
        wholes = zip(items, self._groups.wholes(items), strict=True)
        return [
            self._ingestion(item, whole, known.get(intent_id(item), {})) for item, whole in wholes
        ]

    def _ingestion(
        self, item: dict[str, Any], whole: dict[str, Any], intent: dict[str, Any]
    ) -> Ingestion:
        if group := group_item(intent):
            whole = with_intent(whole, intent, self._groups.ids(group))
        ingestion, shared = from_item(whole), shared_intent(intent_id(item), intent)
        return ingestion.but(shared_intent=shared, revision=ingestion.revision + shared.revision)

    def _batches(self, ids: Sequence[str], **what: Any) -> Iterator[dict[str, Any]]:
        """Yield the existing items of these ids."""
        return together(self._table, ids, UNAVAILABLE, **what)

    def _pages(self, items: Iterator[dict[str, Any]]) -> Iterator[Ingestion]:
        while some := list(islice(items, BATCH)):
            yield from self._ingestions(some)

    def _index(self, name: str, condition: Any, **more: Any) -> Iterator[dict[str, Any]]:
        """Yield the items that an index lists."""
        found = {"IndexName": name, "KeyConditionExpression": condition}
        return self._items(self._table.query, **found, **more)

    def _items(self, read: Any, **arguments: Any) -> Iterator[dict[str, Any]]:
        while True:
            with translated(UNAVAILABLE):
                page = read(**arguments)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            arguments["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def _days_back(since: str, until: str) -> Iterator[str]:
    """Yield the days between two times, last day first."""
    first, day = date.fromisoformat(since[:10]), date.fromisoformat(until[:10])
    while day >= first:
        yield day.isoformat()
        day -= timedelta(days=1)
