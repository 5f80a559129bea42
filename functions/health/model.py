"""What an examination finds: of each check how it stands, and what a person does about it."""

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from functions.telemetry import logger
from lakegate.errors import LakegateError


class Status(StrEnum):
    """How something stands; `warn` is what works now and will not, or may not, for long."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """What one check found; `fix` says in a sentence what to do, "" where all is well."""

    check: str
    status: Status
    message: str
    fix: str = ""


@dataclass(frozen=True)
class Check:
    """Something to look at; `fix` is for a person who learns that it cannot be looked at."""

    name: str
    look: Callable[[], Iterable[Finding]]
    fix: str


def ok(check: str, message: str) -> Finding:
    """All is well."""
    return Finding(check, Status.OK, message)


def warn(check: str, message: str, fix: str) -> Finding:
    """It works, and asks for a person all the same."""
    return Finding(check, Status.WARN, message, fix)


def fail(check: str, message: str, fix: str) -> Finding:
    """It does not work."""
    return Finding(check, Status.FAIL, message, fix)


def carry_out(checks: Sequence[Check]) -> list[Finding]:
    """All that the checks find, in their order; they are carried out at the same time.

    One that cannot be carried out is a failed finding of its own and hides none of the others.
    """
    with ThreadPoolExecutor(max(1, len(checks))) as pool:
        return [finding for found in pool.map(_findings, checks) for finding in found]


def _findings(check: Check) -> list[Finding]:
    try:
        return list(check.look())
    except LakegateError as error:
        return [fail(check.name, f"cannot be checked: {error.message}", check.fix)]
    except Exception as error:  # noqa: BLE001 - whatever it is, the other checks can do without
        # No more of it than its kind: what an unforeseen error tells might be a token.
        logger.error("a check broke", extra={"check": check.name, "kind": type(error).__name__})
        message = f"cannot be checked: it broke with {type(error).__name__}"
        return [fail(check.name, message, "report this: it is a fault of the check itself")]


# What an examination sees from inside the network, as values that judgements go by.


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
