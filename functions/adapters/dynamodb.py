"""DynamoDB's refusals as errors of Lakegate."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lakegate.errors import Transient
from lakegate.refusals import unavailable

BATCH = 100  # the most keys of one BatchGetItem request
# Seconds before keys that an answer left out are asked for again. Three answers have room for the
# largest items, so what is left out after all of these is throttled.
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
_CONDITION_FAILED, _CONFLICT = "ConditionalCheckFailed", "TransactionConflict"


class ConditionFailed(Exception):
    """The condition of a write did not hold."""


class TransactionCancelled(Exception):
    """Conditions of a transaction did not hold; `failed` has a flag for each of its writes."""

    def __init__(self, reasons: Sequence[dict[str, str]]) -> None:
        super().__init__()
        self.failed = [reason.get("Code") == _CONDITION_FAILED for reason in reasons]


class Contended(Transient):
    """Another transaction was writing one of the items: try again at once."""


@contextmanager
def translated(code: str) -> Iterator[None]:
    """Raise ConditionFailed, TransactionCancelled, RightMissing, or Transient with this code.

    Contended is Transient, too.
    """
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
            raise ConditionFailed from error
        reasons: Any = error.response.get("CancellationReasons", [])
        codes = [reason.get("Code") for reason in reasons]
        if _CONDITION_FAILED in codes:
            raise TransactionCancelled(reasons) from error
        if _CONFLICT in codes:
            raise Contended(code, f"DynamoDB refused: {error}") from error
        raise unavailable(error, code, f"DynamoDB refused: {error}") from error
    except BotoCoreError as error:
        raise Transient(code, f"DynamoDB did not answer: {error}") from error


def together(
    table: Any,
    ids: Sequence[str],
    code: str,
    pause: Callable[[float], None] = time.sleep,
    **what: Any,
) -> Iterator[dict[str, Any]]:
    """Yield the existing items of these ids, of boto3's Table. Raises as `translated(code)`."""
    ids = list(dict.fromkeys(ids))  # DynamoDB refuses a key that is asked twice
    for start in range(0, len(ids), BATCH):
        keys = [{"id": id_} for id_ in ids[start : start + BATCH]]
        wanted: dict[str, Any] = {table.name: {"Keys": keys, **what}}
        for seconds in (*PAUSES, None):
            with translated(code):
                answer = table.meta.client.batch_get_item(RequestItems=wanted)
            yield from answer["Responses"].get(table.name, [])
            wanted = answer.get("UnprocessedKeys") or {}
            if not wanted:
                break
            if seconds is None:
                raise Transient(code, "DynamoDB left out keys each time: it is throttled")
            pause(seconds)


def as_read(revision: int) -> dict[str, Any]:
    """Return the condition that an item still has a revision, 0 for one that is to be new."""
    if not revision:
        return {"ConditionExpression": "attribute_not_exists(id)"}
    values = {":read": revision}
    return {"ConditionExpression": "revision = :read", "ExpressionAttributeValues": values}
