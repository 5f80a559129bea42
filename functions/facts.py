"""What an examination sees from inside the network, as values that judgements go by."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True)
class Greeting:
    """How Nessie answers one who asks for main without a token.

    `status` is HTTP's, `date` what its Date header says, if it sends one.
    """

    status: int
    seconds: float
    date: datetime | None = None


@dataclass(frozen=True)
class Standing:
    """The HTTP statuses that a token gets: for reading main, and for trying to merge into it."""

    reading: int
    merging: int = 0


@dataclass(frozen=True)
class Claims:
    """What a token says of itself, unverified; "" and None where it does not say."""

    user: str = ""
    expires: datetime | None = None

    @classmethod
    def of(cls, token: str) -> "Claims":
        """The claims of a JWT (RFC 7519); empty for any other kind of token."""
        try:
            payload = token.split(".")[1]
            told = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            expires = told.get("exp")
            return cls(
                str(told.get("upn", "")),
                datetime.fromtimestamp(expires, UTC) if expires else None,
            )
        except (IndexError, binascii.Error, ValueError, AttributeError, TypeError, OverflowError):
            return cls()


@dataclass(frozen=True)
class Bucket:
    """A bucket's settings: "" for each that is not set; `policy` is its JSON."""

    name: str
    versioning: str
    encryption: str
    policy: str
    is_private: bool


@dataclass(frozen=True)
class Notification:
    """Where a bucket sends which events; `is_filtered` says that it leaves some keys out."""

    queue_arn: str
    events: frozenset[str]
    is_filtered: bool


@dataclass(frozen=True)
class Keys:
    """The attributes that a table or an index is ordered by, and whether it can be used yet."""

    attributes: tuple[str, ...]
    is_active: bool = True


@dataclass(frozen=True)
class Table:
    """The ledger's own key, and its indexes by name."""

    keys: Keys
    indexes: Mapping[str, Keys]


@dataclass(frozen=True)
class Queue:
    """A queue; its messages wait, or are being worked on. "" without a dead-letter queue."""

    name: str
    arn: str
    waiting: int
    in_flight: int
    dead_letters_arn: str


@dataclass(frozen=True)
class Application:
    """The EMR Serverless application."""

    id: str
    state: str
    release_label: str
    auto_start: bool
