"""How far a warehouse's tables were brought, where the warehouse itself has no place to say it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lakegate.errors import Transient


class Marks:
    """Positions in a DynamoDB table (key `table`): of each table the largest that was ever put."""

    def __init__(self, table: Any) -> None:
        """`table` is a boto3 DynamoDB Table resource."""
        self._table = table

    def position(self, table: str) -> int:
        """Where a table was brought to last, 0 where it never was. Raises MARKS_UNAVAILABLE."""
        with _translated():
            found = self._table.get_item(Key={"table": table}, ConsistentRead=True)
        return int(found.get("Item", {}).get("position", 0))

    def put(self, table: str, position: int) -> None:
        """Note that a table was brought to a position, unless it was further already.

        Raises Transient MARKS_UNAVAILABLE.
        """
        try:
            with _translated():
                self._table.put_item(
                    Item={"table": table, "position": position},
                    ConditionExpression="attribute_not_exists(#t) OR #p < :position",
                    ExpressionAttributeNames={"#t": "table", "#p": "position"},
                    ExpressionAttributeValues={":position": position},
                )
        except _Further:
            return


class _Further(Exception):
    """The condition of a write did not hold."""


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
            raise _Further from error
        raise Transient("MARKS_UNAVAILABLE", f"DynamoDB refused: {error}") from error
    except BotoCoreError as error:
        raise Transient("MARKS_UNAVAILABLE", f"DynamoDB did not answer: {error}") from error
