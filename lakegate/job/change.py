"""A change of a table on request: one statement, audited like a landed file.

Its text lies in the lake bucket, as one object under a key that follows from the request: that
object is the change's landed object. Whoever may land files cannot write there.
"""

import dataclasses
import hashlib
import json
import re
from dataclasses import dataclass

from lakegate.errors import Permanent
from lakegate.job.landing import LandedObject
from lakegate.text import count, load_json

CHANGES = "changes/"
MOST_CHARACTERS = 10_000  # of a statement: ledger and main's log keep it
LONGEST_REASON, LONGEST_NAME = 2_000, 200  # of whom decides: so are these
_DIGITS = 32
_RETRACT = re.compile(rf"RETRACT ([0-9a-f]{{{_DIGITS}}})")
_HASH = "[0-9a-f]{16,}"
_RESTORE = re.compile(rf"RESTORE ({_HASH}) REPLACING ({_HASH})")
_TAKE_OVER = re.compile(rf"TAKE OVER (\S+) FROM ({_HASH}) TO ({_HASH}) SINCE ({_HASH})")


@dataclass(frozen=True)
class Takeover:
    """Commits of another writer's branch, from the `first` to the `head`, by their hashes.

    `since` is main's commit at which the branch begins. All heads of a branch share the `first`.
    """

    branch: str
    first: str
    head: str
    since: str

    def change(self, table: str, by: str = "", because: str = "") -> "Change":
        """Return the request to give a table the rows that they gave it; there is only one."""
        text = f"TAKE OVER {self.branch} FROM {self.first} TO {self.head} SINCE {self.since}"
        return Change(table, text, self.head, by, because)


@dataclass(frozen=True)
class Change:
    """A requested change: `statement` is one DELETE, UPDATE or MERGE on `table`, in Spark SQL.

    Or it is `RETRACT` and the id of an ingestion, whose rows it removes (`retraction`). Or it is
    `RESTORE … REPLACING …` and two commits of main: the table's rows become those that it had at
    the first one, if it still is as at the second (`restoration`). Or it is `TAKE OVER …` and
    commits of another branch: what they did to the table's rows is done on main (`Takeover`).

    `token` separates two requests of the same statement. `by` names the requester, and `message`
    gives the reason; neither is part of the identity.
    """

    table: str
    statement: str
    token: str
    by: str = ""
    message: str = ""

    @property
    def digest(self) -> str:
        """Return the digest of table, statement and token: 32 hexadecimal digits."""
        asked = "\0".join((self.table, self.statement, self.token))
        return hashlib.sha256(asked.encode()).hexdigest()[:_DIGITS]

    @property
    def retracts(self) -> str:
        """Return the id of the ingestion whose rows it removes, "" for an SQL statement."""
        matched = _RETRACT.fullmatch(self.statement)
        return matched[1] if matched else ""

    @property
    def restores(self) -> str:
        """Return main's commit whose rows the table gets back, "" for other changes."""
        matched = _RESTORE.fullmatch(self.statement)
        return matched[1] if matched else ""

    @property
    def replaces(self) -> str:
        """Return main's commit whose state of the table is given up for that, "" for others."""
        matched = _RESTORE.fullmatch(self.statement)
        return matched[2] if matched else ""

    @property
    def takeover(self) -> Takeover | None:
        """Return the commits of another branch that it takes over, None for other changes."""
        matched = _TAKE_OVER.fullmatch(self.statement)
        return Takeover(*matched.groups()) if matched else None

    @property
    def only_token(self) -> str:
        """Return the token that its statement must have if it is no SQL, "" for SQL."""
        return self.retracts or self.replaces or (self.takeover.head if self.takeover else "")

    @property
    def key(self) -> str:
        """Return the key of its text in the lake bucket."""
        return f"{CHANGES}{self.table}/{self.digest}/change.json"

    def landed(self, bucket: str, landed_at: str = "") -> LandedObject:
        """Return its landed object in the given lake bucket."""
        size = len(self.to_json().encode())
        return LandedObject(bucket, self.key, self.digest, "", size, landed_at=landed_at)

    def to_json(self) -> str:
        """Return the text to store."""
        return json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes, key: str) -> "Change":
        """Return the change that is stored under a key.

        Raises Permanent BAD_CHANGE for another text than the one that was stored there: only what
        was requested may run.
        """
        try:
            change = cls(**load_json(text))
            own_key = change.key
        except (TypeError, ValueError) as error:
            raise Permanent(
                "BAD_CHANGE", f"{key} is not the text of a change: {error!r}"
            ) from error
        if own_key != key:
            raise Permanent("BAD_CHANGE", f"the text of {key} is not the one that was asked for")
        return change


def retraction(table: str, ingestion: str, by: str = "", because: str = "") -> Change:
    """Return the request to remove the rows of a published file; each file has only this one."""
    return Change(table, f"RETRACT {ingestion}", ingestion, by, because)


def restoration(
    table: str, restores: str, replaces: str, by: str = "", because: str = ""
) -> Change:
    """Return the request to give a table the rows of an earlier commit; two commits have only one.

    `replaces` is main's last commit of the table: whoever asked has seen what that loses.
    """
    return Change(table, f"RESTORE {restores} REPLACING {replaces}", replaces, by, because)


def parse_change_key(key: str) -> tuple[str, str]:
    """Return the table and the digest in a change's key.

    Raises ValueError for any other key.
    """
    match = re.fullmatch(rf"{CHANGES}([^/]+)/([0-9a-f]{{{_DIGITS}}})/change\.json", key)
    if not match:
        raise ValueError(f"not the key of a change: {key!r}")
    return match[1], match[2]


@dataclass(frozen=True)
class Effect:
    """The effect of a change, or of a file that may remove rows of others, on its table, in rows.

    An updated row counts as `removed` and as `added`: `after` is `before` minus `removed` plus
    `added`. Of a file `updated` rows have the key of one that they replace; of a change none count.
    """

    before: int
    after: int
    added: int
    removed: int
    updated: int = 0

    @property
    def wording(self) -> str:
        """Return the effect of a change as a sentence."""
        return f"{count(self.added, 'row')} added, {self.removed:,} removed"


def replacing(added: int, removed: int, updated: int) -> str:
    """Describe the effect of a file that may remove rows of others."""
    inserted, deleted = added - updated, removed - updated
    return f"{count(inserted, 'row')} inserted, {updated:,} updated, {deleted:,} deleted"
