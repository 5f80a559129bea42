"""The ledger: one DynamoDB item an ingestion, each write conditional on the one before."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from heapq import merge
from itertools import islice
from typing import Any

from boto3.dynamodb.conditions import Attr, Key
from botocore.exceptions import BotoCoreError, ClientError

from functions.adapters.ledger_items import from_item, size, to_item
from functions.model.ingestion import ALERTED, Ingestion, State
from functions.model.ingestion_summary import IngestionSummary
from lakegate.errors import LakegateError, Transient
from lakegate.landing import LandedObject

MOST_TOGETHER = 100  # items of a transaction (API reference, "TransactWriteItems")
MOST_BYTES = 4 * 1024**2  # of a transaction's items, of which each has 400 KB at most
_ALWAYS_FIT = 10
_GROWTH = 6_000  # bytes that the ids of a group, and its end, add to an item
_BATCH = 100  # what DynamoDB looks up at a time, and enough to begin with
_UNFIT = "ConditionalCheckFailed"


class UnknownIngestion(LakegateError):
    """The ledger has no ingestion with this id."""

    def __init__(self, ingestion: str) -> None:
        super().__init__("UNKNOWN_INGESTION", f"the ledger has no ingestion {ingestion!r}")


class Moved(Transient):
    """Another process saved some of the ingestions in between; `ids` says which."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = frozenset(ids)
        message = f"moved on by another process meanwhile: {', '.join(ids)}"
        super().__init__("LEDGER_MOVED", message)


class Ledger:
    """The ledger in a DynamoDB table (key `id`; see template.yaml for its indexes)."""

    def __init__(self, table: Any, now: Callable[[], str]) -> None:
        """`table` is a boto3 DynamoDB Table resource, `now` the time as `times.text` writes it."""
        self._table = table
        self._now = now

    def begin(self, ingestion: Ingestion) -> Ingestion:
        """Enter a new ingestion, or return the one already entered under its id."""
        try:
            return self._put(ingestion, Attr("id").not_exists())
        except _Refused:
            return self.get(ingestion.id)

    def get(self, ingestion: str) -> Ingestion:
        """The ingestion as last saved. Raises UnknownIngestion."""
        with _translated():
            found = self._table.get_item(Key={"id": ingestion}, ConsistentRead=True)
        if "Item" not in found:
            raise UnknownIngestion(ingestion)
        return from_item(found["Item"])

    def save(self, ingestion: Ingestion) -> Ingestion:
        """Replace the revision that `ingestion` was made from; returns it with its new revision.

        Raises Moved when another process saved the ingestion in between: what was decided here was
        decided on old knowledge, so read again and decide again.
        """
        try:
            return self._put(ingestion, Attr("revision").eq(ingestion.revision))
        except _Refused as refused:
            raise Moved([ingestion.id]) from refused

    def save_all(self, ingestions: Sequence[Ingestion]) -> list[Ingestion]:
        """Save several that `fit_together`, as `save` does: all or, raising Moved, none."""
        saved = [self._next(each) for each in ingestions]
        puts = [
            {"Put": self._guarded(old, new)} for old, new in zip(ingestions, saved, strict=True)
        ]
        try:
            with _translated():
                self._table.meta.client.transact_write_items(TransactItems=puts)
        except _Cancelled as cancelled:
            moved = [i.id for i, at in zip(ingestions, cancelled.refused, strict=True) if at]
            raise Moved(moved) from cancelled
        return saved

    def together(self, ids: Sequence[str]) -> list[Ingestion]:
        """Those of at most 100 ingestions that the ledger has, as last saved, in their order."""
        found = self._batches(ids, ConsistentRead=True)
        by_id = {item["id"]: from_item(item) for item in found}
        return [by_id[id_] for id_ in ids if id_ in by_id]

    def known(self, ids: list[str], *, consistent: bool = False) -> set[str]:
        """Those of `ids` that the ledger has.

        What was begun a moment ago may be missing, unless `consistent`, which costs twice as much.
        """
        read = {"ConsistentRead": True} if consistent else {}
        return {str(item["id"]) for item in self._batches(ids, ProjectionExpression="id", **read)}

    def unfinished(self, before: str) -> Iterator[Ingestion]:
        """Ingestions with a step still due, last saved before the time `before` (ISO 8601)."""
        condition = Key("unfinished").eq("yes") & Key("saved_at").lt(before)
        return self._pages(
            self._table.query, IndexName="unfinished", KeyConditionExpression=condition
        )

    def needs_recording(self) -> Iterator[Ingestion]:
        """Ended ingestions whose results main's tables may lack, the earliest saved first.

        What was saved a moment ago may not show yet.
        """
        condition = Key("unrecorded").eq("yes")
        return self._pages(
            self._table.query, IndexName="unrecorded", KeyConditionExpression=condition
        )

    def in_state(self, state: State) -> Iterator[Ingestion]:
        """Ingestions in one state, newest landing first."""
        return self._pages(
            self._table.query,
            IndexName="by_state",
            KeyConditionExpression=Key("state").eq(state.value),
            ScanIndexForward=False,
        )

    def landed(self, since: str, until: str) -> Iterator[IngestionSummary]:
        """What landed from the time `since` to before `until` (ISO 8601, UTC), newest first.

        What was entered or saved a moment ago may not show yet.
        """
        for day in _days_back(since, until):
            during = Key("landed_at").between(max(since, day), until)
            found = self._items(
                self._table.query,
                IndexName="by_day",
                KeyConditionExpression=Key("landed_day").eq(day) & during,
                ProjectionExpression="brief",
                ScanIndexForward=False,
            )
            briefs = (IngestionSummary.from_json(item["brief"]) for item in found)
            yield from (brief for brief in briefs if brief.landed_at < until)

    def open_failures(self) -> Iterator[IngestionSummary]:
        """The failed ingestions that people are still to decide on, oldest landing first."""
        found = (
            self._items(
                self._table.query,
                IndexName="by_state",
                KeyConditionExpression=Key("state").eq(state.value),
                # An older release's items lack these.
                FilterExpression=Attr("discarded").ne(True)
                & (Attr("superseded_by").not_exists() | Attr("superseded_by").eq("")),
                ProjectionExpression="id, brief",
                Limit=_BATCH,
            )
            for state in ALERTED
        )
        return merge(*(map(self._brief, each) for each in found), key=lambda each: each.landed_at)

    def waiting(self, table: str) -> list[Ingestion]:
        """The audited ingestions of a table, oldest landing first; the index may lag behind.

        Batches with a file of the table are among them.
        """
        return self._of_table(table, State.AUDITED)

    def going_first(self, table: str) -> list[Ingestion]:
        """The ingestions of a table that go first, not audited yet; the index may lag behind."""
        states = (State.BRANCHED, State.SUBMITTED)
        return [i for state in states for i in self._of_table(table, state) if i.has_priority]

    def same_content(self, ingestion: Ingestion) -> Iterator[Ingestion]:
        """The others of objects of its etag and size, earliest landing first, as last saved.

        One that was begun a moment ago may be missing.
        """
        if not ingestion.landed.etag:
            return
        condition = Key("etag").eq(ingestion.landed.etag)
        index = self._items(
            self._table.query,
            IndexName="by_etag",
            KeyConditionExpression=condition,
            ProjectionExpression="id, #size",
            ExpressionAttributeNames={"#size": "size"},
        )
        ids = (i["id"] for i in index if i["size"] == ingestion.landed.size)
        others = (id_ for id_ in ids if id_ != ingestion.id)
        while some := list(islice(others, _BATCH)):
            yield from self.together(some)

    def versions(self, landed: LandedObject) -> list[Ingestion]:
        """The ingestions of a landed object's key, in no order, each as last saved.

        One that was begun a moment ago may be missing.
        """
        condition = Key("key").eq(landed.key)
        index = self._items(self._table.query, IndexName="by_key", KeyConditionExpression=condition)
        found = self._batches([item["id"] for item in index], ConsistentRead=True)
        return [from_item(item) for item in found if item["bucket"] == landed.bucket]

    def all(self) -> Iterator[Ingestion]:
        """Every ingestion, in no order."""
        return self._pages(self._table.scan)

    def _brief(self, item: dict[str, Any]) -> IngestionSummary:
        """What an item has in brief, or, as an older release wrote none, is read for it."""
        return (
            IngestionSummary.from_json(item["brief"])
            if "brief" in item
            else IngestionSummary.of(self.get(item["id"]))
        )

    def _of_table(self, table: str, state: State) -> list[Ingestion]:
        return list(
            self._pages(
                self._table.query,
                IndexName="by_state",
                KeyConditionExpression=Key("state").eq(state.value),
                FilterExpression=Attr("table").eq(table) | Attr("tables").contains(table),
            )
        )

    def _put(self, ingestion: Ingestion, condition: Any) -> Ingestion:
        saved = self._next(ingestion)
        with _translated():
            self._table.put_item(Item=to_item(saved), ConditionExpression=condition)
        return saved

    def _next(self, ingestion: Ingestion) -> Ingestion:
        return ingestion.but(revision=ingestion.revision + 1, saved_at=self._now())

    def _guarded(self, old: Ingestion, new: Ingestion) -> dict[str, Any]:
        return {
            "TableName": self._table.name,
            "Item": to_item(new),
            "ConditionExpression": "revision = :revision",
            "ExpressionAttributeValues": {":revision": old.revision},
        }

    def _batches(self, ids: Sequence[str], **what: Any) -> Iterator[dict[str, Any]]:
        """The items of these ids, but for those that are not there."""
        name, client = self._table.name, self._table.meta.client
        for start in range(0, len(ids), _BATCH):
            keys = [{"id": id_} for id_ in ids[start : start + _BATCH]]
            wanted: dict[str, Any] = {name: {"Keys": keys, **what}}
            while wanted:
                with _translated():
                    answer = client.batch_get_item(RequestItems=wanted)
                yield from answer["Responses"].get(name, [])
                wanted = answer.get("UnprocessedKeys") or {}

    def _pages(self, read: Any, **arguments: Any) -> Iterator[Ingestion]:
        return map(from_item, self._items(read, **arguments))

    def _items(self, read: Any, **arguments: Any) -> Iterator[dict[str, Any]]:
        while True:
            with _translated():
                page = read(**arguments)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            arguments["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def weight(ingestions: Sequence[Ingestion]) -> int:
    """Return the bytes that these take of one write, also as a group and once they end."""
    return sum(size(each) + _GROWTH for each in ingestions)


def fit_together(ingestions: Sequence[Ingestion]) -> bool:
    """Return whether one write can save these, which are at most 100."""
    return len(ingestions) <= _ALWAYS_FIT or weight(ingestions) <= MOST_BYTES


def _days_back(since: str, until: str) -> Iterator[str]:
    """The days that a time lies in between, the last one first."""
    first, day = date.fromisoformat(since[:10]), date.fromisoformat(until[:10])
    while day >= first:
        yield day.isoformat()
        day -= timedelta(days=1)


class _Refused(Exception):
    """The condition of a write did not hold."""


class _Cancelled(Exception):
    """Conditions of a transaction did not hold: for each of its writes, whether its own did not."""

    def __init__(self, reasons: Sequence[dict[str, str]]) -> None:
        super().__init__()
        self.refused = [reason.get("Code") == _UNFIT for reason in reasons]


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
            raise _Refused from error
        reasons: Any = error.response.get("CancellationReasons", [])
        if _UNFIT in [reason.get("Code") for reason in reasons]:
            raise _Cancelled(reasons) from error
        raise Transient("LEDGER_UNAVAILABLE", f"DynamoDB refused: {error}") from error
    except BotoCoreError as error:
        raise Transient("LEDGER_UNAVAILABLE", f"DynamoDB did not answer: {error}") from error
