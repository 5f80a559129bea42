"""Secrets Manager."""

import time
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from requests import PreparedRequest, Response
from requests.auth import AuthBase

from lakegate.errors import Transient

_SECONDS = 30.0


class Secret:
    """A secret whose text is kept, and read again once somebody refuses it: it may have changed."""

    def __init__(
        self,
        client: Any,
        name: str,
        monotonic: Callable[[], float] = time.monotonic,
        part: Callable[[str], str] = str,
    ) -> None:
        """`client` is boto3's `secretsmanager` client; `part` takes what is wanted of the text."""
        self.name = name
        self._part = part
        self._client = client
        self._monotonic = monotonic
        self._lock = Lock()
        self._text = ""
        self._wait_until = 0.0

    def text(self) -> str:
        """What the secret holds. Raises Transient SECRET_UNAVAILABLE."""
        with self._lock:
            return self._text or self._read()

    def after(self, refused: str) -> str:
        """What to try in place of a text that was refused: itself where there is nothing newer.

        Where there is not, the secret is not read again for half a minute, however often its text
        is refused. Raises Transient SECRET_UNAVAILABLE.
        """
        with self._lock:
            now = self._monotonic()
            if self._text == refused and now >= self._wait_until and self._read() == refused:
                self._wait_until = now + _SECONDS
            return self._text

    def _read(self) -> str:
        self._text = self._part(secret(self._client, self.name))
        return self._text


def secret(client: Any, name: str) -> str:
    """The text of the secret `name`; `client` is boto3's `secretsmanager` client.

    Raises Transient SECRET_UNAVAILABLE: the message names the secret, never what it holds.
    """
    try:
        return str(client.get_secret_value(SecretId=name)["SecretString"])
    except (ClientError, BotoCoreError) as error:
        message = f"cannot read the secret {name!r}: {error}"
        raise Transient("SECRET_UNAVAILABLE", message) from error


# Requests with a bearer token that may be replaced while the function lives.


class Bearer(AuthBase):
    """The token of each request; one that is refused is followed by the secret's newer one."""

    def __init__(self, token: str | Secret) -> None:
        """`token` is a token, or the secret that holds it."""
        self._token = token

    @property
    def whose(self) -> str:
        """What a person knows the token by."""
        return f"the token in {self._token.name}" if isinstance(self._token, Secret) else "a token"

    def text(self) -> str:
        """The token to send now. Raises Transient SECRET_UNAVAILABLE."""
        return self._token.text() if isinstance(self._token, Secret) else self._token

    def after(self, refused: str) -> str:
        """What to send in place of a token that was refused; itself where there is no other."""
        return self._token.after(refused) if isinstance(self._token, Secret) else self._token

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Give the request its token."""
        token = self.text()
        request.headers["Authorization"] = f"Bearer {token}"
        request.register_hook("response", partial(self._again, token))
        return request

    def _again(self, refused: str, answer: Response, **sending: Any) -> Response:
        newer = self.after(refused) if answer.status_code == 401 else refused
        if newer == refused:
            return answer
        request = answer.request.copy()
        request.headers["Authorization"] = f"Bearer {newer}"
        answer.close()
        again: Response = answer.connection.send(request, **sending)
        again.request = request
        return again
