"""Send and read messages of SQS: alerts, actions, announcements and dead letters."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.model.messages.alert import Alert, Kind
from lakegate.errors import Permanent, Transient
from lakegate.job.jobspec import JobSpec
from lakegate.job.shared_run import Turn
from lakegate.refusals import unavailable

if TYPE_CHECKING:  # on_action must start fast
    from functions.model.messages.action import ActionRequest
    from functions.model.messages.announcement import Announcement
    from functions.model.messages.refresh import Refresh

# Messages of one request (Amazon SQS, "SendMessageBatch"). Together they may have 1 MiB; one has
# 25 KB at most, as a reason is cut.
_MOST_AT_ONCE = 10
# Of the characters that JSON has unescaped, SQS refuses these (Amazon SQS, "SendMessage").
_REFUSED = str.maketrans({"\ufffe": r"\ufffe", "\uffff": r"\uffff"})
_TEXTS = tuple(f.name for f in fields(Alert) if f.type is str)


class Queue:
    """One queue of SQS."""

    def __init__(self, client: Any, url: str) -> None:
        """Use boto3's `sqs` client."""
        self._client = client
        self._url = url
        self.name = url.rsplit("/", 1)[-1]

    def _send(self, body: str, called: str = "", **ids: str) -> None:
        """Send a body; `called` names the queue in errors. `ids` of FIFO queues have any length."""
        short = {name: hashlib.sha256(id_.encode()).hexdigest() for name, id_ in ids.items()}
        with translated(called or self.name):
            self._client.send_message(QueueUrl=self._url, MessageBody=_accepted(body), **short)


class Deliveries(Queue):
    """A queue whose messages this process is given."""

    def put_off(self, receipt: str, seconds: int) -> None:
        """Deliver a received message again after so many seconds, not after the queue's own."""
        with translated(self.name):
            self._client.change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=receipt, VisibilityTimeout=seconds
            )


@dataclass(frozen=True)
class DeadLetter:
    """A message of a dead-letter queue; `receipt` deletes it."""

    body: str
    receipt: str


class DeadLetters(Queue):
    """One dead-letter queue."""

    def read(self) -> Iterator[DeadLetter]:
        """Yield the waiting messages, each once; a message stays until `delete`.

        SQS returns a message again as soon as its visibility timeout ends. Reading stops when it
        returns only known ones, so that messages that fail again do not keep it going for ever.
        """
        known: set[str] = set()
        while new := [each for each in self._received() if each["MessageId"] not in known]:
            for message in new:
                known.add(message["MessageId"])
                yield DeadLetter(message["Body"], message["ReceiptHandle"])

    def _received(self) -> list[dict[str, Any]]:
        with translated(self.name):
            answer = self._client.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10)
        return list(answer.get("Messages", []))

    def delete(self, message: DeadLetter) -> None:
        """Delete a handled message."""
        with translated(self.name):
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=message.receipt)


@dataclass(frozen=True)
class QueuedAlert:
    """An alert in the queue, for a channel ("" for the default one) or for the SNS topic."""

    channel: str
    alert: Alert
    to_topic: bool = False

    @property
    def about(self) -> str:
        """Return the text that identifies the message; equal ones are duplicates."""
        return f"{self.to_topic} {self.channel} {self.alert.about or self.alert}"

    def to_json(self) -> str:
        """Return it as a message's body."""
        to = {"channel": self.channel, "to_topic": self.to_topic}
        return json.dumps({**to, **asdict(self.alert)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, body: str) -> "QueuedAlert":
        """Return the alert in a message's body; fields that an older release lacks are "".

        Raises Permanent BAD_ALERT.
        """
        try:
            document = json.loads(body)
            channel, blocks = str(document["channel"]), tuple(document["blocks"])
            known = {name: str(document[name]) for name in _TEXTS if name in document}
            kind = Kind(document["kind"]) if document.get("kind") in list(Kind) else Kind.PLAIN
            alert = Alert(
                blocks=blocks,
                kind=kind,
                revision=int(document.get("revision", 0)),
                lead=int(document.get("lead", 0)),
                commands=tuple(map(str, document.get("commands", ()))),
                also=tuple(map(str, document.get("also", ()))),
                **known,
            )
            return cls(channel, alert, bool(document.get("to_topic")))
        except (ValueError, TypeError, KeyError) as error:
            message = f"this message is not an alert ({error!r}): {body[:300]}"
            raise Permanent("BAD_ALERT", message) from error


class AlertQueue(Queue):
    """The alerts that `on_alert` posts, however long Slack is unavailable.

    A FIFO queue: a channel's alerts keep their order, and the same alert sent twice within five
    minutes is queued once (Amazon SQS, "Exactly-once processing"). Warnings, of which a busy table
    may cause many, have a separate group, so that no failure waits for them. An alert for the topic
    is a separate message in a separate group: neither waits for the other.
    """

    def __init__(self, client: Any, url: str, *, has_topic: bool = False) -> None:
        """Use boto3's `sqs` client."""
        super().__init__(client, url)
        self._has_topic = has_topic

    def post(self, channel: str, alert: Alert) -> None:
        """Queue an alert for a channel ("" for the default one). Raises Transient."""
        if self._has_topic:
            self._queue(QueuedAlert(channel, alert, to_topic=True))
        self._queue(QueuedAlert(channel, alert))

    def _queue(self, queued: QueuedAlert) -> None:
        kind = " warnings" if queued.alert.kind is Kind.WARNING else ""
        group = queued.about if queued.to_topic else f"{queued.channel}{kind}"
        ids = {"MessageGroupId": group, "MessageDeduplicationId": queued.about}
        self._send(queued.to_json(), "alerts", **ids)


class ActionQueue(Queue):
    """The queue of requested actions.

    A FIFO queue: the actions on one ingestion, and the parts of one on a group, are executed one
    after the other; repeated presses of one person within five minutes are queued once (Amazon
    SQS, "Exactly-once processing").
    """

    def send(self, request: "ActionRequest") -> None:
        """Queue a request. Raises Transient QUEUE_UNAVAILABLE."""
        ids = {"MessageGroupId": request.seen.ingestion, "MessageDeduplicationId": request.same}
        self._send(request.text(), "actions", **ids)


class AnnouncementQueue(Queue):
    """The announcements that `on_announcement` sends to consumers."""

    def send(self, announcements: "Iterable[Announcement | Refresh]") -> None:
        """Queue announcements, and refreshes alone. Raises Transient QUEUE_UNAVAILABLE.

        Some may be queued even then.
        """
        said = iter(announcements)
        while some := list(islice(said, _MOST_AT_ONCE)):
            bodies = enumerate(_accepted(each.text()) for each in some)
            entries = [{"Id": str(n), "MessageBody": body} for n, body in bodies]
            with translated("announcements"):
                answer = self._client.send_message_batch(QueueUrl=self._url, Entries=entries)
            if failed := answer.get("Failed"):
                message = f"SQS did not take {len(failed)} announcements: {failed[0]}"
                raise Transient("QUEUE_UNAVAILABLE", message)


class Backlog(Queue):
    """A queue that other processes empty."""

    def size(self) -> int:
        """Return about how many messages wait, those in hand included.

        Raises Transient QUEUE_UNAVAILABLE.
        """
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        with translated(self.name):
            answer = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=names)
        return sum(int(answer["Attributes"][name]) for name in names)


class WorkQueue(Backlog):
    """The files that wait for a shared run."""

    def send(self, message: JobSpec | Turn) -> None:
        """Queue an attempt's job spec, or a turn of them. Raises Transient QUEUE_UNAVAILABLE."""
        self._send(message.to_argument(), "work")


def _accepted(body: str) -> str:
    """Return an equal JSON text that SQS accepts."""
    return body.translate(_REFUSED)


@contextmanager
def translated(queue: str) -> Iterator[None]:
    """Raise SQS's errors as Transient QUEUE_UNAVAILABLE, or RightMissing."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        message = f"SQS did not answer ({queue}): {error}"
        raise unavailable(error, "QUEUE_UNAVAILABLE", message) from error
