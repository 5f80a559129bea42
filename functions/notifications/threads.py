"""Slack's threads, remembered: who opened which, what it is about, and what was told already.

Three kinds of items in one DynamoDB table (key `id`), each deleted some time after its last use:

* of a thread: its first message, the ingestions told of in it, and which are taken care of
* of a cause: the thread that the next alert of this cause belongs to, or who is about to open one
* of an ingestion: its thread, and what people were told of it
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from boto3.dynamodb.conditions import Attr, ConditionBase
from botocore.exceptions import BotoCoreError, ClientError

from functions.adapters.sqs import Queued
from functions.model.alert import (
    Alert,
)
from functions.notifications.alert_text import (
    digest,
    member,
)
from functions.notifications.slack import Place, ThreadGone
from lakegate.errors import Transient

_LEASE = 120  # seconds, longer than a function runs: who claimed and has not posted is dead
_TAKES = "attribute_exists(id) AND (size(members) < :most OR contains(members, :it))"
_MOST = 1000  # members of a thread: nobody finds anything in a longer one


@dataclass(frozen=True)
class Thread:
    """One thread: where its first message is, and what that one said.

    `members` are the subjects that are told of in it, `closed` those that are taken care of; each
    as `member` names it.
    """

    place: Place
    alert: Alert
    members: frozenset[str]
    closed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Known:
    """What people know of an ingestion: the place of its thread, and what they were told.

    `newest` is the ingestion's revision that they were told of last.
    """

    place: Place | None = None
    told: frozenset[str] = frozenset()
    newest: int = 0


class Threads:
    """The threads in a DynamoDB table; see template.yaml."""

    def __init__(self, table: Any, window: float, kept: float, now: Callable[[], float]) -> None:
        """`table` is a boto3 DynamoDB Table resource.

        A thread takes what has its cause for `window` seconds; what is remembered is kept for
        `kept` seconds after its last use. `now` is the time in seconds since 1970.
        """
        self._table = table
        self._window = window
        self._kept = kept
        self._now = now

    def known(self, subject: str) -> Known:
        """What people know of a subject: an ingestion, or whatever else they were told of."""
        found = self._get(_id("subject", subject))
        told = frozenset(found.get("told", ()))
        return Known(_place(found), told, int(found.get("newest", 0)))

    def remember(
        self, subject: str, about: str, place: Place | None = None, revision: int = 0
    ) -> None:
        """Write down that people were told, of which revision, and where the thread is."""
        values: dict[str, Any] = {":told": {digest(about)}, ":expires": self._expires()}
        where = ""
        if place:
            where = ", channel = :channel, ts = :ts"
            values |= {":channel": place.channel, ":ts": place.ts}
        if revision:
            where += ", newest = :newest"
            values |= {":newest": revision}
        with _translated():
            self._table.update_item(
                Key={"id": _id("subject", subject)},
                UpdateExpression=f"SET expires = :expires{where} ADD told :told",
                ExpressionAttributeValues=values,
            )

    def claim(self, cause: str, holder: str, gone: Place | None = None) -> Place | None:
        """The place of the thread that takes the cause; None where `holder` is to open one.

        `gone` is a place that takes nothing any more. The same holder may claim again, as it does
        after a crash. Raises Transient THREAD_TAKEN while another one is about to open it.
        """
        id_, now = _id("cause", cause), self._now()
        found = self._get(id_)
        place, opened = _place(found), float(found.get("opened", 0))
        if place and place != gone and opened > now - self._window:
            return place
        mine = Attr("holder").eq(digest(holder))
        free = Attr("opened").eq(found["opened"]) if place else _abandoned(now)
        claimed = {"id": id_, "holder": digest(holder), "claimed": int(now)}
        try:
            self._put(claimed, Attr("id").not_exists() | mine | free)
        except _Refused as refused:
            message = "another alert of the same cause is just being shown"
            raise Transient("THREAD_TAKEN", message) from refused
        return None

    def open(self, cause: str, alert: Alert, place: Place, subject: str) -> None:
        """Write down that a message opened a thread, which takes the cause from now on.

        Where another one has the cause by now, the thread is the subject's alone.
        """
        body = Queued("", alert).to_json()
        self._put(
            {
                "id": _id("thread", f"{place.channel} {place.ts}"),
                "alert": body,
                "members": {member(subject)},
            }
        )
        with _translated(ignored=True):
            self._table.update_item(
                Key={"id": _id("cause", cause)},
                UpdateExpression="SET channel = :channel, ts = :ts, opened = :opened",
                ConditionExpression="holder = :holder AND attribute_not_exists(opened)",
                ExpressionAttributeValues={
                    ":channel": place.channel,
                    ":ts": place.ts,
                    ":opened": int(self._now()),
                    ":holder": digest(alert.about),
                },
            )
        self.remember(subject, alert.about, place, alert.revision)

    def join(self, place: Place, subject: str, *, closed: bool | None = None) -> Thread:
        """The thread once it tells of a subject, too.

        `closed` says whether it is taken care of, None that nothing changed about that. Raises
        ThreadGone where the thread is not remembered, or takes no more.
        """
        change = {True: ", closed :one", False: " DELETE closed :one", None: ""}[closed]
        try:
            with _translated():
                found = self._table.update_item(
                    Key={"id": _id("thread", f"{place.channel} {place.ts}")},
                    UpdateExpression=f"SET expires = :expires ADD members :one{change}",
                    ConditionExpression=_TAKES,
                    ExpressionAttributeValues={
                        ":one": {member(subject)},
                        ":it": member(subject),
                        ":most": _MOST,
                        ":expires": self._expires(),
                    },
                    ReturnValues="ALL_NEW",
                )["Attributes"]
        except _Refused as refused:
            raise ThreadGone from refused
        alert = Queued.from_json(found["alert"]).alert
        members, done = frozenset(found["members"]), frozenset(found.get("closed", ()))
        return Thread(place, alert, members, done)

    def drop(self, place: Place) -> None:
        """Forget a thread whose first message is gone."""
        with _translated():
            self._table.delete_item(Key={"id": _id("thread", f"{place.channel} {place.ts}")})

    def _get(self, id_: str) -> dict[str, Any]:
        with _translated():
            found = self._table.get_item(Key={"id": id_}, ConsistentRead=True)
        return dict(found.get("Item", {}))

    def _put(self, item: dict[str, Any], condition: ConditionBase | None = None) -> None:
        only = {"ConditionExpression": condition} if condition else {}
        with _translated():
            self._table.put_item(Item={**item, "expires": self._expires()}, **only)

    def _expires(self) -> int:
        return int(self._now() + self._kept)


def _id(kind: str, name: str) -> str:
    return f"{kind} {digest(name)}"


def _place(found: dict[str, Any]) -> Place | None:
    return Place(found["channel"], found["ts"]) if "ts" in found else None


def _abandoned(now: float) -> ConditionBase:
    """That whoever claimed the cause must be dead."""
    return Attr("opened").not_exists() & Attr("claimed").lte(int(now - _LEASE))


class _Refused(Exception):
    """The condition of a write did not hold."""


@contextmanager
def _translated(*, ignored: bool = False) -> Iterator[None]:
    """Outside exceptions as ours; `ignored`: a condition that did not hold changes nothing."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
            if ignored:
                return
            raise _Refused from error
        raise Transient("THREADS_UNAVAILABLE", f"DynamoDB refused: {error}") from error
    except BotoCoreError as error:
        raise Transient("THREADS_UNAVAILABLE", f"DynamoDB did not answer: {error}") from error
