"""A request to a warehouse after main changed: read a table's newest metadata."""

import json
from dataclasses import asdict, dataclass

from lakegate.errors import Permanent


@dataclass(frozen=True)
class Refresh:
    """A table as main had it when it had `position` commits: `metadata` is its metadata file.

    Main only ever gets more commits, so a refresh is older than any with a larger position.
    """

    table: str
    position: int
    metadata: str

    @classmethod
    def read(cls, text: str) -> "Refresh":
        """Return the refresh in a message's body. Raise Permanent BAD_REFRESH."""
        try:
            body = json.loads(text)
            return cls(str(body["table"]), int(body["position"]), str(body["metadata"]))
        except (ValueError, TypeError, KeyError) as error:
            message = f"this is no refresh ({error!r}): {text[:300]}"
            raise Permanent("BAD_REFRESH", message) from error

    def text(self) -> str:
        """Return the refresh as a message's body."""
        return json.dumps(asdict(self), ensure_ascii=False)


def taken(table: str, other: str, remedy: str) -> Permanent:
    """Return the error that two tables have one name in the warehouse, with the remedy."""
    message = f"{table} and {other} are one table to the warehouse, which has it follow {other}"
    return Permanent("NAME_TAKEN", f"{message}; to have it follow {table} instead, {remedy}")
