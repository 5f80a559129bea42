"""SQS: what no handler could work off, and what people are to be told."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.model.alert import (
    Alert,
    Kind,
)
from functions.model.announcement import Announcement
from lakegate.errors import Permanent, Transient

_TEXTS = tuple(f.name for f in fields(Alert) if f.type is str)


@dataclass(frozen=True)
class DeadLetter:
    """One message; `receipt` is what deletes it."""

    body: str
    receipt: str


class DeadLetters:
    """One dead-letter queue on SQS."""

    def __init__(self, client: Any, url: str) -> None:
        """`client` is boto3's `sqs` client."""
        self._client = client
        self._url = url
        self.name = url.rsplit("/", 1)[-1]

    def read(self) -> Iterator[DeadLetter]:
        """The messages that are waiting, each once; each stays until it is forgotten.

        SQS gives one that stayed again as soon as its visibility timeout ends: when no other is
        left, the reading ends, or what cannot be worked off now would be read for ever.
        """
        seen: set[str] = set()
        while fresh := [each for each in self._received() if each["MessageId"] not in seen]:
            for message in fresh:
                seen.add(message["MessageId"])
                yield DeadLetter(message["Body"], message["ReceiptHandle"])

    def _received(self) -> list[dict[str, Any]]:
        with translated(self.name):
            answer = self._client.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10)
        return list(answer.get("Messages", []))

    def forget(self, letter: DeadLetter) -> None:
        """Delete a message that has been dealt with."""
        with translated(self.name):
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=letter.receipt)


@dataclass(frozen=True)
class Queued:
    """An alert on its way to people: to a channel ("" for the default one), or to the topic."""

    channel: str
    alert: Alert
    to_topic: bool = False

    @property
    def about(self) -> str:
        """What makes it another one than all others."""
        return f"{self.to_topic} {self.channel} {self.alert.about or self.alert}"

    def to_json(self) -> str:
        """It as a message's body."""
        to = {"channel": self.channel, "to_topic": self.to_topic}
        return json.dumps({**to, **asdict(self.alert)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, body: str) -> "Queued":
        """What a message's body says; what an older release did not say is "".

        Raises Permanent BAD_ALERT.
        """
        try:
            told = json.loads(body)
            channel, blocks = str(told["channel"]), tuple(told["blocks"])
            known = {name: str(told[name]) for name in _TEXTS if name in told}
            kind = Kind(told["kind"]) if told.get("kind") in list(Kind) else Kind.PLAIN
            revision = int(told.get("revision", 0))
            alert = Alert(blocks=blocks, kind=kind, revision=revision, **known)
            return cls(channel, alert, bool(told.get("to_topic")))
        except (ValueError, TypeError, KeyError) as error:
            raise Permanent("BAD_ALERT", f"this is no alert ({error!r}): {body[:300]}") from error


class AlertQueue:
    """What people are to be told; `on_alert` shows it to them, however long Slack is away.

    A queue of SQS's kind "FIFO": a channel's alerts keep their order, and the same alert given
    twice within five minutes is in it once (Amazon SQS, "Exactly-once processing"). Warnings, of
    which a busy table may cause many, have a group of their own: no failure waits for them.
    What is for the topic is a message of its own, in a group of its own: it waits for no channel,
    nor any for it.
    """

    def __init__(self, client: Any, url: str, *, has_topic: bool = False) -> None:
        """`client` is boto3's `sqs` client."""
        self._client = client
        self._url = url
        self._has_topic = has_topic

    def post(self, channel: str, alert: Alert) -> None:
        """Have people told, in a channel ("" for the default one). Raises Transient."""
        if self._has_topic:
            self._send(Queued(channel, alert, to_topic=True))
        self._send(Queued(channel, alert))

    def _send(self, queued: Queued) -> None:
        kind = " warnings" if queued.alert.kind is Kind.WARNING else ""
        group = queued.about if queued.to_topic else f"{queued.channel}{kind}"
        with translated("alerts"):
            self._client.send_message(
                QueueUrl=self._url,
                MessageBody=queued.to_json(),
                MessageGroupId=_digest(group),
                MessageDeduplicationId=_digest(queued.about),
            )


class AnnouncementQueue:
    """What readers are to be told; `on_announcement` tells them."""

    def __init__(self, client: Any, url: str) -> None:
        """`client` is boto3's `sqs` client."""
        self._client = client
        self._url = url

    def send(self, announcement: Announcement) -> None:
        """Have readers told. Raises Transient QUEUE_UNAVAILABLE."""
        with translated("announcements"):
            self._client.send_message(QueueUrl=self._url, MessageBody=announcement.text())


def _digest(text: str) -> str:
    """Text of any kind and length as what SQS takes for an id."""
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def translated(queue: str) -> Iterator[None]:
    """Raise what SQS raises as Transient QUEUE_UNAVAILABLE."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise Transient("QUEUE_UNAVAILABLE", f"SQS did not answer ({queue}): {error}") from error
