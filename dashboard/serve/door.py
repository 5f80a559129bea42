"""Let in who knows the page's secret: every user of the machine can reach its port.

The secret is the path of the first address. A cookie keeps it, so that the page's other addresses
work from then on, also those in alerts.
"""

from abc import ABC, abstractmethod
from hmac import compare_digest

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_REFUSAL = """<!doctype html>
<html lang="en"><head><title>Lakegate</title><meta name="color-scheme" content="light dark"></head>
<body><main><h1>{title}</h1>
<p>{advice}</p>
</main></body></html>
"""


class Door(ABC):
    """The application that answers all requests of others than those let in itself."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or the opening of a channel."""
        answer = self._app
        if scope["type"] != "lifespan":
            answer = await self.answer(HTTPConnection(scope))
        await answer(scope, receive, send)

    @abstractmethod
    async def answer(self, request: HTTPConnection) -> ASGIApp:
        """Return what answers a request: the application, or a refusal."""


def refusal(title: str, advice: str) -> ASGIApp:
    """Return the answer to whoever is not let in; the advice is HTML."""
    return HTMLResponse(_REFUSAL.format(title=title, advice=advice), status_code=403)


def is_secret(given: str, secret: str) -> bool:
    """Return whether a text is the secret, in a time that does not depend on the text."""
    return compare_digest(given.encode(), secret.encode())


class OwnDoor(Door):
    """The door of a page for the one person who started it."""

    def __init__(self, app: ASGIApp, secret: str, port: int) -> None:
        """Use a cookie of the port, because a browser has one set of cookies for all ports."""
        super().__init__(app)
        self._secret = secret
        self._cookie = f"lakegate-{port}"

    async def answer(self, request: HTTPConnection) -> ASGIApp:
        """Return the entrance for the secret, and the application for its cookie."""
        if is_secret(request.scope["path"].removeprefix("/"), self._secret):
            return self._entrance()
        if is_secret(request.cookies.get(self._cookie, ""), self._secret):
            return self._app
        return refusal(
            "This page is for who started it",
            "Open the address that <code>lakegate page</code> printed: then this one works, too.",
        )

    def _entrance(self) -> ASGIApp:
        """Return the answer that gives the cookie and leads to the first view."""
        answer = RedirectResponse("/", status_code=303, headers={"Cache-Control": "no-store"})
        # Lax: a link in an alert is another site's, and no request of another site acts.
        answer.set_cookie(self._cookie, self._secret, httponly=True, samesite="lax")
        return answer
