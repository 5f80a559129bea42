"""Refresh Snowflake's tables to main's newest metadata through its SQL API.

Snowflake documentation, "SQL API": each request has an id, so that one whose answer was lost can be
sent again and is executed once. Statements run asynchronously and are polled: 202 means running,
200 done.
"""

import time
import uuid
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

import requests

from functions.adapters.secrets import Secret
from functions.downstream.refresh_lease import RefreshLeases
from functions.downstream.snowflake_login import Login
from functions.downstream.snowflake_sql import base_url, relative
from functions.downstream.snowflake_sql import refresh as refresh_statement
from functions.model.messages.refresh import Refresh
from lakegate.errors import LakegateError, Permanent, Transient

_SECONDS = 30  # Snowflake then cancels a statement, also after a crash here
_CLOCK_SKEW = 30  # allowance for clocks and delayed answers
_TIMEOUT = 10
_PAUSES = (0.2, 0.5, 1, 2, 4, 8, 8, 8)
_TRIES = 3
_ENDED = ("000604", "000630")  # a statement that was cancelled, or took too long
_REFUSED = (400, 422)
_REFUSED_ACCESS = (401, 403)


class Snowflake:
    """The tables of one login; a Consumer."""

    def __init__(
        self,
        secret: Secret,
        leases: RefreshLeases,
        lake_bucket: str,
        now: Callable[[], datetime],
        function_timeout: int,
        tables: Collection[str] = (),
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Refresh only `tables` (empty for all); `secret` holds the login as JSON.

        A caller runs at most `function_timeout` seconds.
        """
        self._secret = secret
        self._leases = leases
        self._base = base_url(lake_bucket)
        self._now = now
        self._lease_seconds = function_timeout + _SECONDS + _CLOCK_SKEW
        self._tables = frozenset(tables)
        self._pause = pause
        self._session = requests.Session()
        self._session.headers["User-Agent"] = "lakegate/1"

    def refresh(self, refresh: Refresh) -> bool:
        """Refresh a table as Consumer requires; skip one that is not configured.

        Raises Permanent SNOWFLAKE_REFUSED, for example for a missing table, and OUTSIDE_VOLUME;
        Transient SNOWFLAKE_UNAVAILABLE, SNOWFLAKE_LOGIN_REFUSED and BAD_SECRET; and the errors of
        RefreshLeases.
        """
        if self._tables and refresh.table not in self._tables:
            return False
        path = relative(refresh.metadata, self._base)
        lease = self._leases.lease(
            refresh.table, refresh.position, self._now(), self._lease_seconds
        )
        if not lease:
            return False
        try:
            self._carry_out(refresh.table, path)
        except Permanent:  # after other errors the statement may still run
            self._leases.free(lease)
            raise
        self._leases.done(lease)
        return True

    def _carry_out(self, table: str, path: str) -> None:
        login, answer = self._begun(table, path)
        for seconds in (*_PAUSES, None):
            handle = _handle(answer)
            if answer.status_code == requests.codes.ok:
                return
            if seconds is not None:
                self._pause(seconds)
                answer = self._send(login, "GET", f"/{handle}")
        message = f"Snowflake did not refresh {table} in time: it will be retried"
        raise Transient("SNOWFLAKE_UNAVAILABLE", message)

    def _begun(self, table: str, path: str) -> tuple[Login, requests.Response]:
        """Start the refresh; return the login that was used and the answer.

        Only here is a refused login followed by the secret's newer one: a statement under the old
        login must end before another begins.
        """
        text = self._secret.text()
        login = Login.read(text, self._secret.name)
        try:
            return login, self._submitted(login, table, path)
        except _LoginRefused:
            newer = self._secret.after(text)
            if newer == text:
                raise
        login = Login.read(newer, self._secret.name)
        return login, self._submitted(login, table, path)

    def _submitted(self, login: Login, table: str, path: str) -> requests.Response:
        """Send a statement, again under the same id if the answer was lost."""
        body = {
            "statement": refresh_statement(login.place, table, path),
            "timeout": _SECONDS,
            "database": login.place.database,
            **({"role": login.role} if login.role else {}),
            **({"warehouse": login.warehouse} if login.warehouse else {}),
        }
        parameters = {"requestId": str(uuid.uuid4()), "async": "true"}
        for seconds in _PAUSES[: _TRIES - 1]:
            try:
                return self._send(login, "POST", json=body, params=parameters)
            except _Lost:
                self._pause(seconds)
                parameters["retry"] = "true"
        return self._send(login, "POST", json=body, params=parameters)

    def _send(self, login: Login, method: str, path: str = "", **more: Any) -> requests.Response:
        headers = {
            "Authorization": f"Bearer {login.token(self._now())}",
            "X-Snowflake-Authorization-Token-Type": "KEYPAIR_JWT",
            "Accept": "application/json",
        }
        address = f"{login.address}/api/v2/statements{path}"
        try:
            answer = self._session.request(
                method, address, headers=headers, timeout=_TIMEOUT, allow_redirects=False, **more
            )
        except requests.RequestException as error:
            raise _Lost("SNOWFLAKE_UNAVAILABLE", f"Snowflake did not answer: {error}") from error
        if answer.status_code in (requests.codes.ok, requests.codes.accepted):
            return answer
        raise _refusal(answer, self._secret.name)


class _Lost(Transient):
    """It is unknown whether Snowflake executed the request."""


class _LoginRefused(Transient):
    """Snowflake refused the login: an administrator must store another in its secret."""


def _refusal(answer: requests.Response, secret: str) -> LakegateError:
    status, (code, why) = answer.status_code, _error(answer)
    if status in _REFUSED_ACCESS:
        message = f"Snowflake refused the login in the secret {secret!r} ({why}): store a valid one"
        return _LoginRefused("SNOWFLAKE_LOGIN_REFUSED", message)
    if status >= requests.codes.internal_server_error or status == requests.codes.too_many_requests:
        return _Lost("SNOWFLAKE_UNAVAILABLE", f"Snowflake answered {status}: {why}")
    if status in _REFUSED and code not in _ENDED:
        return Permanent("SNOWFLAKE_REFUSED", f"Snowflake refused the statement ({code}): {why}")
    return Transient("SNOWFLAKE_UNAVAILABLE", f"Snowflake answered {status}: {why}")


def _handle(answer: requests.Response) -> str:
    """Return the handle to poll a statement by."""
    try:
        return str(uuid.UUID(answer.json()["statementHandle"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"Snowflake answered without a statement handle: {answer.text[:200]}"
        raise Transient("SNOWFLAKE_UNAVAILABLE", message) from error


def _error(answer: requests.Response) -> tuple[str, str]:
    """Return the code and the message of an answer."""
    try:
        document = answer.json()
        return str(document.get("code", "")), str(document.get("message", ""))
    except (ValueError, AttributeError):
        return "", answer.text[:200]
