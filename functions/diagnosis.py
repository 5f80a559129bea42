"""What an examination finds: of each check how it stands, and what a person does about it."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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
