"""Let in who knows the page's secret: every user of the machine can reach its port.

The secret is the path of the first address. A cookie keeps it, so that the page's other addresses
work from then on, also those in alerts.
"""

from hmac import compare_digest

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_REFUSAL = """<!doctype html>
<html lang="en"><head><title>Lakegate</title><meta name="color-scheme" content="light dark"></head>
<body><main><h1>This page is for who started it</h1>
<p>Open the address that <code>lakegate page</code> printed: then this one works, too.</p>
</main></body></html>
"""


class Door:
    """The application that answers all requests without the secret itself."""

    def __init__(self, app: ASGIApp, secret: str, port: int) -> None:
        """Use a cookie of the port, because a browser has one set of cookies for all ports."""
        self._app = app
        self._secret = secret
        self._cookie = f"lakegate-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or the opening of a channel."""
        answer = self._app if scope["type"] == "lifespan" else self._answer(HTTPConnection(scope))
        await answer(scope, receive, send)

    def _answer(self, request: HTTPConnection) -> ASGIApp:
        if self._is_secret(request.scope["path"].removeprefix("/")):
            return self._entrance()
        if self._is_secret(request.cookies.get(self._cookie, "")):
            return self._app
        return HTMLResponse(_REFUSAL, status_code=403)

    def _is_secret(self, given: str) -> bool:
        return compare_digest(given.encode(), self._secret.encode())

    def _entrance(self) -> ASGIApp:
        """Return the answer that gives the cookie and leads to the first view."""
        answer = RedirectResponse("/", status_code=303, headers={"Cache-Control": "no-store"})
        # Lax: a link in an alert is another site's, and no request of another site acts.
        answer.set_cookie(self._cookie, self._secret, httponly=True, samesite="lax")
        return answer
