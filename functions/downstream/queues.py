"""Queue the refreshes of consumers."""

import uuid

from functions.adapters.sqs import Queue
from functions.model.messages.refresh import Refresh
from lakegate.errors import Permanent


class RefreshQueue(Queue):
    """The queued refreshes of one consumer.

    A FIFO queue: it never hands out two refreshes of one table at once, and equal ones sent within
    five minutes are queued once (Amazon SQS, "Exactly-once processing").
    """

    def send(self, refresh: Refresh) -> None:
        """Queue a refresh. Raises Transient QUEUE_UNAVAILABLE."""
        same = f"{refresh.table} {refresh.position}"
        self._send(refresh.text(), MessageGroupId=refresh.table, MessageDeduplicationId=same)


class BodyQueue(Queue):
    """A queue of bodies in no order: announcements for OpenLineage, or its dead letters."""

    def send(self, body: str) -> None:
        """Queue a body. Raises Transient QUEUE_UNAVAILABLE."""
        self._send(body)


class RefreshDeadLetters(Queue):
    """The dead-letter queue for the refreshes that a consumer refuses permanently.

    An administrator can retry them from there (Amazon SQS, "Dead-letter queue redrive"). They stay
    in their group, so two refreshes of one table are never handed out at once.
    """

    def keep(self, body: str) -> None:
        """Keep a message's body, even if it is kept already. Raises Transient QUEUE_UNAVAILABLE."""
        other = uuid.uuid4().hex  # SQS remembers ids for five minutes, even of deleted messages
        self._send(body, MessageGroupId=_table(body), MessageDeduplicationId=other)


def _table(body: str) -> str:
    """Return the refresh's table; an unreadable body forms its own group."""
    try:
        return Refresh.read(body).table
    except Permanent:
        return body
