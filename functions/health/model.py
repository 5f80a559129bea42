"""Define findings of an examination, and the observed values that they are based on."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from lakegate import tokens
from lakegate.errors import LakegateError


class Status(StrEnum):
    """The status of a finding; `warn` works now but may soon fail."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """One finding; `fix` says what to do, "" where all is well.

    `carry_out` fills in an empty `check` with the name of the check that was run.
    """

    check: str
    status: Status
    message: str
    fix: str = ""


@dataclass(frozen=True)
class Check:
    """A check to run; `fix` is the remedy if it cannot be run.

    An optional check that cannot be run is a warning only.
    """

    name: str
    run: Callable[[], Iterable[Finding]]
    fix: str
    optional: bool = False


def ok(message: str, check: str = "") -> Finding:
    """Return the finding that all is well."""
    return Finding(check, Status.OK, message)


def warn(message: str, fix: str, check: str = "") -> Finding:
    """Return the finding that it works but needs attention."""
    return Finding(check, Status.WARN, message, fix)


def fail(message: str, fix: str, check: str = "") -> Finding:
    """Return the finding that it does not work."""
    return Finding(check, Status.FAIL, message, fix)


def carry_out(checks: Sequence[Check]) -> list[Finding]:
    """Run the checks in parallel and return their findings in order.

    A check that cannot be run is a failed finding and hides none of the others.
    """
    with ThreadPoolExecutor(max(1, len(checks))) as pool:
        done = zip(checks, pool.map(_findings, checks), strict=True)
        return [replace(f, check=f.check or check.name) for check, found in done for f in found]


def _findings(check: Check) -> Iterable[Finding]:
    try:
        return list(check.run())
    except LakegateError as error:
        if check.optional:
            return [warn(f"skipped: {error.message}", check.fix)]
        return [fail(f"cannot be checked: {error.message}", check.fix)]
    except Exception as error:  # noqa: BLE001 - the other checks must not suffer
        # Only the error's type: its message might contain a token.
        from functions.telemetry import logger  # it takes its time, which a client does not need

        logger.error("a check failed", extra={"check": check.name, "kind": type(error).__name__})
        message = f"cannot be checked: the check raised {type(error).__name__}"
        return [fail(message, "report this: the check itself is faulty")]


@dataclass(frozen=True)
class AnonymousAnswer:
    """Nessie's answer to a request for main without a token.

    `status` is HTTP's, `date` the time in its Date header, if any.
    """

    status: int
    seconds: float
    date: datetime | None = None


@dataclass(frozen=True)
class TokenStatus:
    """The HTTP statuses for a token: for reading main, and for trying to merge into it."""

    reading: int
    merging: int = 0


@dataclass(frozen=True)
class Claims:
    """A token's unverified claims; "" and None for missing ones."""

    user: str = ""
    expires: datetime | None = None

    @classmethod
    def of(cls, token: str) -> "Claims":
        """Return the claims of a JWT (RFC 7519); none for any other kind of token."""
        return cls(str(tokens.claims(token).get("upn", "")), tokens.end(token))


@dataclass(frozen=True)
class Notification:
    """A bucket's notification of a queue; `is_filtered` says that it skips some keys."""

    queue_arn: str
    events: frozenset[str]
    is_filtered: bool


@dataclass(frozen=True)
class Queue:
    """A queue with its waiting and in-flight messages."""

    name: str
    arn: str
    waiting: int
    in_flight: int


@dataclass(frozen=True)
class Application:
    """The EMR Serverless application; `most_cpus` of all its workers, None without a bound."""

    id: str
    state: str
    release_label: str
    auto_start: bool
    most_cpus: int | None = None
