"""SQS: what no handler could work off, and what people are to be told."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.messages import Alert, Kind
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
        """The messages that are waiting; each stays until it is forgotten."""
        while True:
            with translated(self.name):
                answer = self._client.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10)
            messages = answer.get("Messages", [])
            if not messages:
                return
            for message in messages:
                yield DeadLetter(message["Body"], message["ReceiptHandle"])

    def forget(self, letter: DeadLetter) -> None:
        """Delete a message that has been dealt with."""
        with translated(self.name):
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=letter.receipt)


class AlertQueue:
    """What people are to be told; `on_alert` shows it to them, however long Slack is away.

    A queue of SQS's kind "FIFO": a channel's alerts keep their order, and the same alert given
    twice within five minutes is in it once (Amazon SQS, "Exactly-once processing").
    """

    def __init__(self, client: Any, url: str) -> None:
        """`client` is boto3's `sqs` client."""
        self._client = client
        self._url = url

    def post(self, channel: str, alert: Alert) -> None:
        """See Alerts.post."""
        with translated("alerts"):
            self._client.send_message(
                QueueUrl=self._url,
                MessageBody=queued(channel, alert),
                MessageGroupId=_digest(channel),
                MessageDeduplicationId=_digest(f"{channel} {alert.about or alert}"),
            )


def queued(channel: str, alert: Alert) -> str:
    """An alert for a channel, as a message's body."""
    return json.dumps({"channel": channel, **asdict(alert)}, ensure_ascii=False)


def unqueued(body: str) -> tuple[str, Alert]:
    """The channel and the alert in a message's body; what an older release did not say is "".

    Raises Permanent BAD_ALERT.
    """
    try:
        told = json.loads(body)
        channel, blocks = str(told["channel"]), tuple(told["blocks"])
        known = {name: str(told[name]) for name in _TEXTS if name in told}
        kind = Kind(told["kind"]) if told.get("kind") in list(Kind) else Kind.PLAIN
        return channel, Alert(blocks=blocks, kind=kind, **known)
    except (ValueError, TypeError, KeyError) as error:
        raise Permanent("BAD_ALERT", f"this is no alert ({error!r}): {body[:300]}") from error


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
