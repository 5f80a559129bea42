"""Read secrets from Secrets Manager, and send requests with a bearer token."""

import time
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from requests import PreparedRequest, Response
from requests.auth import AuthBase

from lakegate.refusals import unavailable

_SECONDS = 30.0


class Secret:
    """A cached secret that is read again after its text was refused, as it may have changed."""

    def __init__(
        self,
        client: Any,
        name: str,
        monotonic: Callable[[], float] = time.monotonic,
        part: Callable[[str], str] = str,
    ) -> None:
        """Use boto3's `secretsmanager` client; `part` extracts the wanted part of the text."""
        self.name = name
        self._part = part
        self._client = client
        self._monotonic = monotonic
        self._lock = Lock()
        self._text = ""
        self._wait_until = 0.0

    def text(self) -> str:
        """Return the secret's text. Raises Transient SECRET_UNAVAILABLE."""
        with self._lock:
            return self._text or self._read()

    def after(self, refused: str) -> str:
        """Return the text to try after `refused`; `refused` itself if it is still current.

        In that case the secret is not read again for half a minute. Raises Transient
        SECRET_UNAVAILABLE.
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
    """Return the text of the secret `name`; `client` is boto3's `secretsmanager` client.

    Raises Transient SECRET_UNAVAILABLE: the message has the secret's name, never its text.
    """
    try:
        return str(client.get_secret_value(SecretId=name)["SecretString"])
    except (ClientError, BotoCoreError) as error:
        message = f"cannot read the secret {name!r}: {error}"
        raise unavailable(error, "SECRET_UNAVAILABLE", message) from error


class Bearer(AuthBase):
    """Bearer authentication that repeats a refused request with the secret's newer token."""

    def __init__(self, token: str | Secret) -> None:
        """Use a token, or the secret that holds it."""
        self._token = token

    @property
    def name(self) -> str:
        """Return a description of the token for messages."""
        return f"the token in {self._token.name}" if isinstance(self._token, Secret) else "a token"

    def text(self) -> str:
        """Return the current token. Raises Transient SECRET_UNAVAILABLE."""
        return self._token.text() if isinstance(self._token, Secret) else self._token

    def after(self, refused: str) -> str:
        """Return the token to try after `refused`; `refused` itself if there is no other."""
        return self._token.after(refused) if isinstance(self._token, Secret) else self._token

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Add the token to a request."""
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
