"""Record Slack's threads and the notifications posted in them.

One DynamoDB table (key `id`) has three kinds of items, each deleted some time after its last use:

* a thread: its first message, the ingestions in it, which are resolved, and how the last was
* a cause: the thread for the next alert of this cause, or the process that is opening one
* an ingestion: its thread, and its notifications so far
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from boto3.dynamodb.conditions import Attr, ConditionBase

from functions.adapters.dynamodb import ConditionFailed, translated
from functions.adapters.sqs import QueuedAlert
from functions.model.messages.alert import Alert
from functions.notifications.alert_text import digest, member
from functions.notifications.slack import Place, ThreadGone
from lakegate.errors import Transient

_UNAVAILABLE = "THREADS_UNAVAILABLE"
_LEASE = 120  # seconds, longer than a function runs: after that the holder has crashed
_TAKES = "attribute_exists(id) AND (size(members) < :most OR contains(members, :it))"
_MOST = 1000  # members of a thread; a longer one is unreadable


@dataclass(frozen=True)
class Thread:
    """One thread: the place and content of its first message.

    `members` are the subjects in it, `closed` those that are resolved, each named by `member`;
    `outcome` says how the last of the latter was, in escaped text.
    """

    place: Place
    alert: Alert
    members: frozenset[str]
    closed: frozenset[str] = frozenset()
    outcome: str = ""


@dataclass(frozen=True)
class Known:
    """The notifications so far about an ingestion, and the place of its thread.

    `newest` is the ingestion's revision in the last notification.
    """

    place: Place | None = None
    posted: frozenset[str] = frozenset()
    newest: int = 0


class Threads:
    """The threads in a DynamoDB table; see template.yaml."""

    def __init__(self, table: Any, window: float, kept: float, now: Callable[[], float]) -> None:
        """Use boto3's DynamoDB Table resource.

        A thread accepts alerts with its cause for `window` seconds; items are kept for `kept`
        seconds after their last use. `now` returns the time in seconds since 1970.
        """
        self._table = table
        self._window = window
        self._kept = kept
        self._now = now

    def known(self, subject: str) -> Known:
        """Return the notifications so far about a subject, such as an ingestion."""
        item = self._get(_id("subject", subject))
        posted = frozenset(item.get("told", ()))
        return Known(_place(item), posted, int(item.get("newest", 0)))

    def remember(
        self, subject: str, about: str, place: Place | None = None, revision: int = 0
    ) -> None:
        """Record a notification, its revision, and the place of its thread."""
        values: dict[str, Any] = {":told": {digest(about)}, ":expires": self._expires()}
        where = ""
        if place:
            where = ", channel = :channel, ts = :ts"
            values |= {":channel": place.channel, ":ts": place.ts}
        if revision:
            where += ", newest = :newest"
            values |= {":newest": revision}
        change = f"SET expires = :expires{where} ADD told :told"
        self._update(_id("subject", subject), change, values)

    def claim(self, cause: str, holder: str, gone: Place | None = None) -> Place | None:
        """Return the place of the thread for a cause; None where `holder` is to open one.

        `gone` is the place of a thread that is gone. The same holder may claim again after a crash.
        Raises Transient THREAD_TAKEN while another process is about to open it.
        """
        id_, now = _id("cause", cause), self._now()
        item = self._get(id_)
        place, opened = _place(item), float(item.get("opened", 0))
        if place and place != gone and opened > now - self._window:
            return place
        mine = Attr("holder").eq(digest(holder))
        free = Attr("opened").eq(item["opened"]) if place else _abandoned(now)
        claimed = {"id": id_, "holder": digest(holder), "claimed": int(now)}
        try:
            self._put(claimed, Attr("id").not_exists() | mine | free)
        except ConditionFailed as refused:
            message = "another process is posting an alert with the same cause: it will be retried"
            raise Transient("THREAD_TAKEN", message) from refused
        return None

    def open(self, cause: str, alert: Alert, place: Place, subject: str) -> None:
        """Record that a message opened a thread, which takes alerts of the cause from now on.

        If another thread has the cause by now, this thread is for the subject alone.
        """
        body = QueuedAlert("", alert).to_json()
        self._put({"id": _thread(place), "alert": body, "members": {member(subject)}})
        change = "SET channel = :channel, ts = :ts, opened = :opened"
        values = {":channel": place.channel, ":ts": place.ts, ":opened": int(self._now())}
        only = "holder = :holder AND attribute_not_exists(opened)"
        with suppress(ConditionFailed):
            held = {":holder": digest(alert.about)}
            self._update(_id("cause", cause), change, values | held, ConditionExpression=only)
        self.remember(subject, alert.about, place, alert.revision)

    def join(
        self, place: Place, subject: str, *, closed: bool | None = None, outcome: str = ""
    ) -> Thread:
        """Add a subject to a thread; return the thread.

        `closed` says whether it is resolved, None for no change, and `outcome` how. Raises
        ThreadGone where the thread is not recorded, or is full.
        """
        change = {True: ", closed :one", False: " DELETE closed :one", None: ""}[closed]
        last, said = "", {}
        if closed and outcome:
            last, said = ", outcome = :said", {":said": [member(subject), outcome]}
        update = f"SET expires = :expires{last} ADD members :one{change}"
        joins = {":one": {member(subject)}, ":it": member(subject), ":most": _MOST}
        values = {**joins, ":expires": self._expires(), **said}
        only = {"ConditionExpression": _TAKES, "ReturnValues": "ALL_NEW"}
        try:
            item = self._update(_thread(place), update, values, **only)["Attributes"]
        except ConditionFailed as refused:
            raise ThreadGone from refused
        alert = QueuedAlert.from_json(item["alert"]).alert
        members, done = frozenset(item["members"]), frozenset(item.get("closed", ()))
        last, words = item.get("outcome", ("", ""))
        return Thread(place, alert, members, done, words if last in done else "")

    def close(self, thread: Thread, ingestions: Iterable[str]) -> Thread:
        """Record that those of these ingestions which are in a thread are resolved; return it."""
        others = thread.members.intersection(ingestions) - thread.closed
        if others:
            values = {":others": set(others)}
            self._update(_thread(thread.place), "ADD closed :others", values)
        return replace(thread, closed=thread.closed | others)

    def drop(self, place: Place) -> None:
        """Delete the record of a thread whose first message is gone."""
        with translated(_UNAVAILABLE):
            self._table.delete_item(Key={"id": _thread(place)})

    def _get(self, id_: str) -> dict[str, Any]:
        with translated(_UNAVAILABLE):
            answer = self._table.get_item(Key={"id": id_}, ConsistentRead=True)
        return dict(answer.get("Item", {}))

    def _put(self, item: dict[str, Any], condition: ConditionBase | None = None) -> None:
        only = {"ConditionExpression": condition} if condition else {}
        with translated(_UNAVAILABLE):
            self._table.put_item(Item={**item, "expires": self._expires()}, **only)

    def _update(self, id_: str, change: str, values: dict[str, Any], **more: str) -> Any:
        what = {"UpdateExpression": change, "ExpressionAttributeValues": values}
        with translated(_UNAVAILABLE):
            return self._table.update_item(Key={"id": id_}, **what, **more)

    def _expires(self) -> int:
        return int(self._now() + self._kept)


def _id(kind: str, name: str) -> str:
    return f"{kind} {digest(name)}"


def _thread(place: Place) -> str:
    return _id("thread", f"{place.channel} {place.ts}")


def _place(item: dict[str, Any]) -> Place | None:
    return Place(item["channel"], item["ts"]) if "ts" in item else None


def _abandoned(now: float) -> ConditionBase:
    """Return the condition that the process which claimed the cause has crashed."""
    return Attr("opened").not_exists() & Attr("claimed").lte(int(now - _LEASE))
