"""Dead-letter queues: messages that no handler could work off."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lakegate.errors import Transient


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
            with _translated(self.name):
                answer = self._client.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10)
            messages = answer.get("Messages", [])
            if not messages:
                return
            for message in messages:
                yield DeadLetter(message["Body"], message["ReceiptHandle"])

    def forget(self, letter: DeadLetter) -> None:
        """Delete a message that has been dealt with."""
        with _translated(self.name):
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=letter.receipt)


@contextmanager
def _translated(queue: str) -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise Transient("QUEUE_UNAVAILABLE", f"SQS did not answer ({queue}): {error}") from error
