"""Requests with a bearer token that may be replaced while the function lives."""

from functools import partial
from typing import Any

from requests import PreparedRequest, Response
from requests.auth import AuthBase

from functions.secret_store import Secret


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
