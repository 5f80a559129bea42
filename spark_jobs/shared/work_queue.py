"""The queues of a shared run, on SQS: waiting files come in, names of reports go out."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from lakegate.job.shared_run import MOST_FILES, Judged, SharedRun
from lakegate.refusals import unavailable
from spark_jobs.lake.aws import client

HIDDEN_SECONDS = 30  # a message that a run has in hand is hidden for so long, again and again
_LONGEST_WAIT, _BATCH = 20, 10  # the most that SQS takes


@dataclass(frozen=True)
class Waiting:
    """A message of the work queue; `receipt` stands for this taking of it.

    `taken` is how often it was taken, this time included.
    """

    id: str
    body: str
    receipt: str
    taken: int


class Queues(Protocol):
    """The work queue and the verdict queue of a shared run, as `SqsQueues`."""

    def take(self, seconds: float) -> list[Waiting]:
        """Return waiting messages, up to `MOST_FILES`; wait so long for the first, if need be."""

    def hide(self, messages: Sequence[Waiting], seconds: int) -> None:
        """Let messages come again after so many seconds from now, unless they are deleted."""

    def delete(self, messages: Sequence[Waiting]) -> None:
        """Delete messages whose files are done."""

    def send(self, judged: Judged) -> None:
        """Send a message to the verdict queue."""


class SqsQueues:
    """Both queues on SQS. Every method raises Transient QUEUE_UNAVAILABLE."""

    def __init__(self, client: Any, work: str, verdicts: str) -> None:
        """Use boto3's `sqs` client; the queues are given by their addresses."""
        self._client = client
        self._work = work
        self._verdicts = verdicts

    @classmethod
    def connect(cls, run: SharedRun) -> "SqsQueues":
        """Return the queues of a run, with a client of its region."""
        return cls(client("sqs"), run.work_queue, run.verdict_queue)

    def take(self, seconds: float) -> list[Waiting]:
        """Return waiting messages: see `Queues`. Waits at most 20 seconds."""
        taken = new = self._received(min(int(seconds), _LONGEST_WAIT), _BATCH)
        while new and len(taken) < MOST_FILES:
            new = self._received(0, min(_BATCH, MOST_FILES - len(taken)))
            taken = [*taken, *new]
        return taken

    def hide(self, messages: Sequence[Waiting], seconds: int) -> None:
        """Let messages come again: see `Queues`. One that was taken again stays as it is."""
        for part in _entries(messages, VisibilityTimeout=seconds):
            with _translated():
                self._client.change_message_visibility_batch(QueueUrl=self._work, Entries=part)

    def delete(self, messages: Sequence[Waiting]) -> None:
        """Delete messages whose files are done; one that is not deleted comes again."""
        for part in _entries(messages):
            with _translated():
                self._client.delete_message_batch(QueueUrl=self._work, Entries=part)

    def send(self, judged: Judged) -> None:
        """Send a message to the verdict queue."""
        with _translated():
            self._client.send_message(QueueUrl=self._verdicts, MessageBody=judged.to_json())

    def _received(self, seconds: int, most: int) -> list[Waiting]:
        with _translated():
            answer = self._client.receive_message(
                QueueUrl=self._work,
                MaxNumberOfMessages=most,
                WaitTimeSeconds=seconds,
                VisibilityTimeout=HIDDEN_SECONDS,
                MessageSystemAttributeNames=["ApproximateReceiveCount"],
            )
        return [_waiting(each) for each in answer.get("Messages", [])]


def _waiting(message: dict[str, Any]) -> Waiting:
    taken = int(message["Attributes"]["ApproximateReceiveCount"])
    return Waiting(message["MessageId"], message["Body"], message["ReceiptHandle"], taken)


def _entries(messages: Sequence[Waiting], **more: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the entries of requests for messages, each with `more`."""
    for start in range(0, len(messages), _BATCH):
        part = enumerate(messages[start : start + _BATCH])
        yield [{"Id": str(n), "ReceiptHandle": each.receipt, **more} for n, each in part]


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        message = f"SQS did not answer the shared run: {error}"
        raise unavailable(error, "QUEUE_UNAVAILABLE", message) from error
