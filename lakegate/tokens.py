"""Nessie's bearer tokens."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

from lakegate.errors import Transient
from lakegate.text import load_json

_MEND = "`lakegate rotate` makes new tokens, and `lakegate doctor` tells what is wrong with them"


class TokenRefused(Transient):
    """Nessie answers 401: for good, or until it knows a key that was just rotated."""

    def __init__(self, whose: str) -> None:
        """`whose` names the secret, or the owner of the token."""
        reasons = "it has ended, or was signed with a key that is not Nessie's"
        super().__init__("TOKEN_REFUSED", f"Nessie refuses {whose}: {reasons}. {_MEND}")


def check_lasts(token: str, now: datetime, minutes: int) -> None:
    """Raise Transient TOKEN_ENDS for a token that ends before a run of so many minutes may."""
    at = end(token)
    if at and at < now + timedelta(minutes=minutes):
        message = f"the job's token for Nessie ends at {at:%Y-%m-%d %H:%M} UTC, before this run"
        raise Transient("TOKEN_ENDS", f"{message} has had its {minutes} minutes. {_MEND}")


def claims(token: str) -> dict[str, Any]:
    """Return a token's claims, unverified (RFC 7519); none of another kind of text."""
    payload = token.partition(".")[2].partition(".")[0]
    try:
        document = load_json(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def end(token: str) -> datetime | None:
    """Return the time at which the token ends (RFC 7519, section 4.1.4); None if it names none."""
    try:
        return datetime.fromtimestamp(claims(token)["exp"], UTC)
    except (ValueError, KeyError, TypeError, OverflowError, OSError):
        return None
