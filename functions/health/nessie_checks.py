"""Check that Nessie is up, rejects anonymous requests, and gives each token its own rights."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, urlsplit

import requests

from functions.adapters.nessie import MAIN
from functions.health.model import (
    AnonymousAnswer,
    Check,
    Claims,
    Finding,
    TokenStatus,
    fail,
    ok,
    warn,
)
from lakegate import trust
from lakegate.errors import Transient

PUBLISHER = "publisher"
ROLES = ("uploader", "job", "reader")  # whose tokens the checkup may read
RENEW_WITH_LEFT = timedelta(days=7)
_SLOW = 2.0
_ACCESS = "Nessie's access"
_ROTATE = "make new tokens with `lakegate rotate`"


def check_anonymous_answer(uri: str, answer: AnonymousAnswer) -> Iterator[Finding]:
    """Check that Nessie is up and rejects anonymous requests."""
    took = f"answers in {answer.seconds * 1000:,.0f} ms at {uri}"
    if answer.seconds > _SLOW:
        yield warn(took, "give Nessie's tasks and its database more resources, or less load")
    else:
        yield ok(took)
    if answer.status == 401:
        yield ok("anonymous requests are refused: closed", _ACCESS)
    elif answer.status < 400:
        fix = "turn on Nessie's authentication and authorization, as infra/platform.yml does"
        yield fail("anonymous requests are open: main is readable without a token", fix, _ACCESS)
    else:
        message = f"anonymous requests are answered {answer.status} and not 401"
        fix = "check that this address is Nessie's own, and read Nessie's log"
        yield fail(message, fix, _ACCESS)


def check_connection(uri: str) -> Finding:
    """Check that tokens travel encrypted, as they do to a Nessie that Lakegate deployed."""
    address = urlsplit(uri)
    if address.scheme == "https":
        return ok("is encrypted (https)")
    if (address.hostname or "").startswith("127."):
        return ok("stays on this machine")
    message = "tokens travel unencrypted inside the network (HTTP)"
    fix = 'deploy again; a Nessie of your own needs TLS itself (docs/platform.md, "TLS")'
    return warn(message, fix)


def check_version(version: str, oldest: str) -> Finding:
    """Check that Nessie is at least as new as the tested version."""
    if not version:
        fix = f"see that Nessie's image is {oldest or 'the documented one'} or newer"
        return warn("Nessie does not report its version", fix)
    if oldest and _numbers(version) < _numbers(oldest):
        fix = f"deploy the platform with NessieVersion {oldest} or newer"
        return fail(f"is {version}, older than {oldest}", fix)
    return ok(f"is {version}" + (f" ({oldest} or newer is required)" if oldest else ""))


def check_token(role: str, claims: Claims, token_status: TokenStatus, now: datetime) -> Finding:
    """Check that a role's token is its own, is accepted, and does not expire soon."""
    if claims.user and claims.user != f"lakegate-{role}":
        return fail(f"its secret holds the token of {claims.user}", _ROTATE)
    left = claims.expires - now if claims.expires else None
    if left is not None and left <= timedelta(0):
        return fail(f"expired {claims.expires:%Y-%m-%d %H:%M} UTC", _ROTATE)
    if token_status.reading == 401:
        fix = f"{_ROTATE}; if it stays, check Nessie's public key and clock"
        return fail("Nessie does not accept it", fix)
    if token_status.reading != 200:
        fix = "compare Nessie's rules with those of infra/platform.yml, and read Nessie's log"
        return fail(f"reading main with it is answered {token_status.reading}", fix)
    if left is None:
        return ok("is accepted; it does not tell when it expires")
    until = f"is accepted, and expires {claims.expires:%Y-%m-%d %H:%M} UTC, {left.days} days left"
    return warn(until, _ROTATE) if left < RENEW_WITH_LEFT else ok(until)


def check_rules(role: str, token_status: TokenStatus) -> Finding:
    """Check that only the publisher may change main."""
    check, status = f"{role} and main", token_status.merging
    fix = "give Nessie the rules of infra/platform.yml, with authorization turned on"
    if status in (0, 401) or status >= 500:
        message = f"a merge could not be tried ({status or token_status.reading})"
        return fail(message, f"see the findings on Nessie and on {role}'s token", check)
    if role == PUBLISHER:
        refused = fail("may not commit: nothing can be published", fix, check)
        return refused if status == 403 else ok("may commit, as it must", check)
    if status == 403:
        return ok("may not commit, as it must not", check)
    return fail("may commit, so unaudited data could reach main", fix, check)


def role_check(
    role: str, token: Callable[[], str], nessie: "NessieProbe", now: Callable[[], datetime]
) -> Check:
    """Return the check of a role's token and rights; `token` reads the token."""

    def run() -> list[Finding]:
        read = token()
        status = nessie.token_status(read)
        return [check_token(role, Claims.of(read), status, now()), check_rules(role, status)]

    fix = "create the tokens with `lakegate rotate`; then check the route to Nessie"
    return Check(f"{role}'s token", run, fix)


def check_main(*, begun: bool, lacking: Sequence[str]) -> Finding:
    """Check that main has its first commit and the tables of audit results."""
    fix = "run `lakegate deploy` (`lakegate up` on one machine): it seeds main"
    if not begun:
        return fail("has no commit yet, so nothing can be merged into it", fix)
    if lacking:
        return fail(f"lacks {' and '.join(lacking)}", fix)
    return ok("is seeded, with its tables of results")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


_TIMEOUT = 5
_VERSION = re.compile(r"^  version: ['\"]?([0-9][\w.\-]*)", re.MULTILINE)


class NessieProbe:
    """A Nessie server; nothing is changed."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def anonymous_answer(self) -> AnonymousAnswer:
        """Return how Nessie answers a request without a token."""
        began = time.monotonic()
        answer = self._ask("GET", "/api/v2/trees/main")
        seconds, date = time.monotonic() - began, answer.headers.get("Date")
        return AnonymousAnswer(
            answer.status_code, seconds, parsedate_to_datetime(date) if date else None
        )

    def version(self) -> str:
        """Return Nessie's version, "" where it is unknown.

        Only its description of the API has it (Nessie documentation, "Rest API").
        """
        answer = self._ask("GET", "/nessie-openapi/openapi.yaml", {"Range": "bytes=0-2000"})
        match = _VERSION.search(answer.text[:2000]) if answer.ok else None
        return match[1] if match else ""

    def token_status(self, token: str) -> TokenStatus:
        """Return the statuses for reading main, and for trying to merge into it.

        The trial merges main into itself as a dry run, so it changes nothing.
        """
        known = {"Authorization": f"Bearer {token}"}
        answer = self._ask("GET", "/api/v2/trees/main", known)
        if not answer.ok:
            return TokenStatus(answer.status_code)
        with _translated():
            head = answer.json()["reference"]["hash"]
        onto = quote(f"{MAIN}@{head}", safe="@")
        body = {"fromRefName": MAIN, "fromHash": head, "isDryRun": True}
        tried = self._ask("POST", f"/api/v2/trees/{onto}/history/merge", known, body)
        return TokenStatus(answer.status_code, tried.status_code)

    def _ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, body: Any = None
    ) -> requests.Response:
        with _translated():
            return requests.request(
                method,
                self._uri + path,
                headers=headers,
                json=body,
                timeout=_TIMEOUT,
                verify=trust.bundle(),
            )


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except requests.RequestException as error:
        raise Transient("CATALOG_UNAVAILABLE", f"Nessie did not answer: {error}") from error
    except (KeyError, TypeError) as error:
        raise Transient("NOT_NESSIE", "the server at Nessie's address is not Nessie") from error
