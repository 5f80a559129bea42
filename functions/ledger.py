"""The ledger: one DynamoDB item an ingestion, each write conditional on the one before."""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from boto3.dynamodb.conditions import Attr, Key
from botocore.exceptions import BotoCoreError, ClientError

from functions.ingestion import Ingestion, State
from lakegate.errors import LakegateError, Transient
from lakegate.landing import LandedObject
from lakegate.report import Reason

_LANDED = tuple(f.name for f in dataclasses.fields(LandedObject))
_JSON = ("times", "checks")


class UnknownIngestion(LakegateError):
    """The ledger has no ingestion with this id."""

    def __init__(self, ingestion: str) -> None:
        super().__init__("UNKNOWN_INGESTION", f"the ledger has no ingestion {ingestion!r}")


class Ledger:
    """The ledger in a DynamoDB table (key `id`; indexes `by_state` and `unfinished`)."""

    def __init__(self, table: Any) -> None:
        """`table` is a boto3 DynamoDB Table resource."""
        self._table = table

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
        return _from_item(found["Item"])

    def save(self, ingestion: Ingestion) -> Ingestion:
        """Replace the revision that `ingestion` was made from; returns it with its new revision.

        Raises Transient LEDGER_MOVED when another process saved the ingestion in between: what
        was decided here was decided on old knowledge, so read again and decide again.
        """
        try:
            return self._put(ingestion, Attr("revision").eq(ingestion.revision))
        except _Refused as refused:
            message = f"ingestion {ingestion.id} was moved on by another process meanwhile"
            raise Transient("LEDGER_MOVED", message) from refused

    def known(self, ids: list[str]) -> set[str]:
        """Those of `ids` that the ledger has."""
        found: set[str] = set()
        for start in range(0, len(ids), 100):
            found |= self._known_batch(ids[start : start + 100])
        return found

    def unfinished(self, before: str) -> Iterator[Ingestion]:
        """Ingestions with a step still due, last saved before the time `before` (ISO 8601)."""
        condition = Key("unfinished").eq("yes") & Key("saved_at").lt(before)
        return self._pages(
            self._table.query, IndexName="unfinished", KeyConditionExpression=condition
        )

    def in_state(self, state: State) -> Iterator[Ingestion]:
        """Ingestions in one state, newest landing first."""
        return self._pages(
            self._table.query,
            IndexName="by_state",
            KeyConditionExpression=Key("state").eq(state.value),
            ScanIndexForward=False,
        )

    def all(self) -> Iterator[Ingestion]:
        """Every ingestion, in no order."""
        return self._pages(self._table.scan)

    def _put(self, ingestion: Ingestion, condition: Any) -> Ingestion:
        saved = dataclasses.replace(ingestion, revision=ingestion.revision + 1)
        with _translated():
            self._table.put_item(Item=_to_item(saved), ConditionExpression=condition)
        return saved

    def _known_batch(self, ids: list[str]) -> set[str]:
        name, client = self._table.name, self._table.meta.client
        wanted: dict[str, Any] = {
            name: {"Keys": [{"id": i} for i in ids], "ProjectionExpression": "id"}
        }
        found: set[str] = set()
        while wanted:
            with _translated():
                answer = client.batch_get_item(RequestItems=wanted)
            found |= {item["id"] for item in answer["Responses"].get(name, [])}
            wanted = answer.get("UnprocessedKeys") or {}
        return found

    def _pages(self, read: Any, **arguments: Any) -> Iterator[Ingestion]:
        while True:
            with _translated():
                page = read(**arguments)
            yield from map(_from_item, page["Items"])
            if "LastEvaluatedKey" not in page:
                return
            arguments["ExclusiveStartKey"] = page["LastEvaluatedKey"]


class _Refused(Exception):
    """The condition of a write did not hold."""


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
            raise _Refused from error
        raise Transient("LEDGER_UNAVAILABLE", f"DynamoDB refused: {error}") from error
    except BotoCoreError as error:
        raise Transient("LEDGER_UNAVAILABLE", f"DynamoDB did not answer: {error}") from error


def _to_item(ingestion: Ingestion) -> dict[str, Any]:
    item = {f.name: getattr(ingestion, f.name) for f in dataclasses.fields(ingestion)}
    landed = dataclasses.asdict(item.pop("landed"))
    reason = item.pop("reason")
    item |= landed
    item |= {name: json.dumps(item[name], default=dict) for name in _JSON}
    item["state"] = ingestion.state.value
    item["saved_at"] = max(ingestion.times.values(), default=landed["landed_at"])
    if reason:
        item |= {"reason_code": reason.code, "reason": reason.message}
    if ingestion.unfinished:
        item["unfinished"] = "yes"
    return item


def _from_item(item: dict[str, Any]) -> Ingestion:
    names = {f.name for f in dataclasses.fields(Ingestion)}
    fields = {name: value for name, value in item.items() if name in names}
    fields |= {name: json.loads(item[name]) for name in _JSON}
    fields |= {name: int(item[name]) for name in ("revision", "attempt", "failures", "rows")}
    landed = {name: item[name] for name in _LANDED} | {"size": int(item["size"])}
    return Ingestion(
        **fields
        | {
            "landed": LandedObject(**landed),
            "state": State(item["state"]),
            "checks": tuple(fields["checks"]),
            "reason": Reason(item["reason_code"], item["reason"]) if "reason" in item else None,
        }
    )
