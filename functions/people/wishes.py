"""What somebody wants done with an ingestion, on its way to be carried out."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from functions.people.buttons import Seen, Verb
from functions.queues import translated
from lakegate.errors import Permanent


@dataclass(frozen=True)
class Wish:
    """One thing that somebody wants done with what they saw; `reason` is why it is published."""

    what: Verb
    seen: Seen
    by: str
    reason: str = ""

    def text(self) -> str:
        """The wish as a message's body."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def of(cls, body: str) -> "Wish":
        """The wish in a message's body. Raises Permanent BAD_WISH."""
        try:
            told = json.loads(body)
            seen = Seen(str(told["seen"]["ingestion"]), str(told["seen"]["token"]))
            return cls(Verb(told["what"]), seen, str(told["by"]), str(told["reason"]))
        except (ValueError, TypeError, KeyError) as error:
            raise Permanent("BAD_WISH", f"this is no wish ({error!r}): {body[:300]}") from error


class ActionQueue:
    """Wishes that wait to be carried out.

    A queue of SQS's kind "FIFO": those about one ingestion are carried out one after the other, and
    what one person wants of what they saw is in it once, however often they press within five
    minutes (Amazon SQS, "Exactly-once processing").
    """

    def __init__(self, client: Any, url: str) -> None:
        """`client` is boto3's `sqs` client."""
        self._client = client
        self._url = url

    def send(self, wish: Wish) -> None:
        """Put a wish there. Raises Transient QUEUE_UNAVAILABLE."""
        same = json.dumps([wish.what, wish.by, *asdict(wish.seen).values()])
        with translated("actions"):
            self._client.send_message(
                QueueUrl=self._url,
                MessageBody=wish.text(),
                MessageGroupId=_digest(wish.seen.ingestion),
                MessageDeduplicationId=_digest(same),
            )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
