"""SQS: what readers are to be told, and what warehouses are to be brought to."""

import hashlib
import uuid
from typing import Any

from functions.adapters.sqs import translated
from functions.model.announcement import Refresh
from lakegate.errors import Permanent


class RefreshQueue:
    """What one warehouse is to be brought to.

    A queue of SQS's kind "FIFO": of one table no two refreshes are handed out at once, and what is
    sent twice within five minutes is in it once (Amazon SQS, "Exactly-once processing").
    """

    def __init__(self, client: Any, url: str) -> None:
        """`client` is boto3's `sqs` client."""
        self._client = client
        self._url = url

    def send(self, refresh: Refresh) -> None:
        """Have the warehouse brought there. Raises Transient QUEUE_UNAVAILABLE."""
        with translated(self._url.rsplit("/", 1)[-1]):
            self._client.send_message(
                QueueUrl=self._url,
                MessageBody=refresh.text(),
                MessageGroupId=_digest(refresh.table),
                MessageDeduplicationId=_digest(f"{refresh.table} {refresh.position}"),
            )


class GivenUp:
    """The dead letters of a RefreshQueue, where what a warehouse refuses for good is put at once.

    From there people have it tried again (Amazon SQS, "Dead-letter queue redrive"), which leaves it
    in its group: as in the RefreshQueue, of one table no two are then handed out at once.
    """

    def __init__(self, client: Any, url: str) -> None:
        """`client` is boto3's `sqs` client."""
        self._client = client
        self._url = url

    def keep(self, body: str) -> None:
        """Keep a message's body, as often as it is refused. Raises Transient QUEUE_UNAVAILABLE."""
        with translated(self._url.rsplit("/", 1)[-1]):
            self._client.send_message(
                QueueUrl=self._url,
                MessageBody=body,
                MessageGroupId=_digest(_table(body)),
                # SQS remembers ids for five minutes, also of what was taken out meanwhile.
                MessageDeduplicationId=uuid.uuid4().hex,
            )


def _table(body: str) -> str:
    """Whose refresh it is; what cannot be read is nobody's but its own."""
    try:
        return Refresh.read(body).table
    except Permanent:
        return body


def _digest(text: str) -> str:
    """Text of any kind and length as what SQS takes for an id."""
    return hashlib.sha256(text.encode()).hexdigest()
