"""A change of a table that a person asks for: one statement, audited like a file that lands.

Its text lies in the lake bucket, as one object under a key that follows from what was asked: that
object is the change's landed object. Who may land files cannot put anything there.
"""

import dataclasses
import hashlib
import json
import re
from dataclasses import dataclass

from lakegate.errors import Permanent
from lakegate.landing import LandedObject
from lakegate.text import load_json

CHANGES = "changes/"
MOST_CHARACTERS = 10_000  # of a statement: ledger and main's log keep it
_DIGITS = 32


@dataclass(frozen=True)
class Change:
    """What was asked: `statement` is one DELETE, UPDATE or MERGE on `table`, in Spark SQL.

    `token` tells one asking of a statement from the next. `by` names who asked, and `message` says
    why; neither is part of the identity.
    """

    table: str
    statement: str
    token: str
    by: str = ""
    message: str = ""

    @property
    def digest(self) -> str:
        """What table, statement and token make: 32 hexadecimal digits."""
        asked = "\0".join((self.table, self.statement, self.token))
        return hashlib.sha256(asked.encode()).hexdigest()[:_DIGITS]

    @property
    def key(self) -> str:
        """Where its text lies in the lake bucket."""
        return f"{CHANGES}{self.table}/{self.digest}/change.json"

    def landed(self, bucket: str, landed_at: str = "") -> LandedObject:
        """Its landed object, in the lake bucket that is named."""
        size = len(self.to_json().encode())
        return LandedObject(bucket, self.key, self.digest, "", size, landed_at=landed_at)

    def to_json(self) -> str:
        """The text that is put."""
        return json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes, key: str) -> "Change":
        """The change whose text lies under a key.

        Raises Permanent BAD_CHANGE where it is none, or not the one that was put there: what runs
        is what was asked.
        """
        try:
            change = cls(**load_json(text))
            found = change.key
        except (TypeError, ValueError) as error:
            raise Permanent("BAD_CHANGE", f"{key} is no change's text: {error!r}") from error
        if found != key:
            raise Permanent("BAD_CHANGE", f"the text of {key} is not the one that was asked for")
        return change


def parse_change_key(key: str) -> tuple[str, str]:
    """The table and the digest that a change's key names.

    Raises ValueError when the key is not one of ours.
    """
    match = re.fullmatch(rf"{CHANGES}([^/]+)/([0-9a-f]{{{_DIGITS}}})/change\.json", key)
    if not match:
        raise ValueError(f"not the key of a change: {key!r}")
    return match[1], match[2]


@dataclass(frozen=True)
class Effect:
    """What a change made of its table, in rows.

    A row that got other values counts as `removed` and as `added`, so that `after` is `before`
    less the removed and with the added.
    """

    before: int
    after: int
    added: int
    removed: int

    @property
    def wording(self) -> str:
        """The effect for people."""
        return f"{self.added:,} rows added, {self.removed:,} removed"
