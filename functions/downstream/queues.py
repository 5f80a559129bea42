"""Queue the refreshes of consumers."""

import uuid
from typing import Any

from functions.adapters.sqs import digest, translated
from functions.model.messages.announcement import Refresh
from lakegate.errors import Permanent


class RefreshQueue:
    """The queued refreshes of one consumer.

    A FIFO queue: it never hands out two refreshes of one table at once, and equal ones sent within
    five minutes are queued once (Amazon SQS, "Exactly-once processing").
    """

    def __init__(self, client: Any, url: str) -> None:
        """Use boto3's `sqs` client."""
        self._client = client
        self._url = url

    def send(self, refresh: Refresh) -> None:
        """Queue a refresh. Raises Transient QUEUE_UNAVAILABLE."""
        with translated(self._url.rsplit("/", 1)[-1]):
            self._client.send_message(
                QueueUrl=self._url,
                MessageBody=refresh.text(),
                MessageGroupId=digest(refresh.table),
                MessageDeduplicationId=digest(f"{refresh.table} {refresh.position}"),
            )


class BodyQueue:
    """A queue of bodies in no order: announcements for OpenLineage, or its dead letters."""

    def __init__(self, client: Any, url: str) -> None:
        """Use boto3's `sqs` client."""
        self._client = client
        self._url = url

    def send(self, body: str) -> None:
        """Queue a body. Raises Transient QUEUE_UNAVAILABLE."""
        with translated(self._url.rsplit("/", 1)[-1]):
            self._client.send_message(QueueUrl=self._url, MessageBody=body)


class RefreshDeadLetters:
    """The dead-letter queue for the refreshes that a consumer refuses permanently.

    An administrator can retry them from there (Amazon SQS, "Dead-letter queue redrive"). They stay
    in their group, so two refreshes of one table are never handed out at once.
    """

    def __init__(self, client: Any, url: str) -> None:
        """Use boto3's `sqs` client."""
        self._client = client
        self._url = url

    def keep(self, body: str) -> None:
        """Keep a message's body, even if it is kept already. Raises Transient QUEUE_UNAVAILABLE."""
        with translated(self._url.rsplit("/", 1)[-1]):
            self._client.send_message(
                QueueUrl=self._url,
                MessageBody=body,
                MessageGroupId=digest(_table(body)),
                # SQS remembers ids for five minutes, even those of deleted messages.
                MessageDeduplicationId=uuid.uuid4().hex,
            )


def _table(body: str) -> str:
    """Return the refresh's table; an unreadable body forms its own group."""
    try:
        return Refresh.read(body).table
    except Permanent:
        return body
