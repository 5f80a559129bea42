"""Let in whom a proxy has logged in: it proves that it is the proxy, and names the person.

Every request and every channel's opening is judged by itself. What the client sends under the same
names is believed as little as a wrong proof: a header that is there twice is refused.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol
from urllib.parse import quote, urlsplit

import jwt
import requests
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp

from dashboard.serve.door import Door, is_secret, refusal
from lakegate.errors import LakegateError

PERSON = "lakegate-person"  # the header by which the door tells the page a name that it verified
SECRET = "lakegate-proxy-secret"  # noqa: S105 - the header's name
_TOKEN = "x-amzn-oidc-data"  # noqa: S105 - the header's name
_SECRET, _HEADER = "LAKEGATE_PAGE_PROXY_SECRET", "LAKEGATE_PAGE_PERSON_HEADER"
_BALANCER, _CLAIM = "LAKEGATE_PAGE_LOAD_BALANCER", "LAKEGATE_PAGE_PERSON_CLAIM"
_SHORTEST, _LONGEST_NAME = 32, 200
_ARN = re.compile(r"arn:aws:elasticloadbalancing:([a-z0-9-]+):\d{12}:loadbalancer/app/[\w/-]+")
_KEY_ID = re.compile(r"[0-9a-fA-F-]{36}")
_SECONDS = 5
_ADVICE = "Open it by your team's own address, behind its login."


class Proxy(Protocol):
    """A proxy that logs people in."""

    def person(self, headers: Headers) -> str:
        """Return the person whom the proxy names. Raises LakegateError NOT_NAMED."""


@dataclass(frozen=True)
class SecretProxy:
    """A proxy that knows a secret, which it sends in a header, and the person in another one."""

    secret: str = field(repr=False)
    header: str = "X-Forwarded-Email"

    def person(self, headers: Headers) -> str:
        """Return the person whom the proxy names. Raises LakegateError NOT_NAMED."""
        if not is_secret(_only(headers, SECRET), self.secret):
            raise _not_named(f"{SECRET} is wrong")
        return _only(headers, self.header)


@dataclass(frozen=True)
class LoadBalancer:
    """AWS's Application Load Balancer, which signs what it says about the person.

    `key` returns a public key by its id.
    """

    arn: str
    key: Callable[[str], str]
    claim: str = "email"

    def person(self, headers: Headers) -> str:
        """Return the person whom the balancer names. Raises LakegateError NOT_NAMED."""
        token = _only(headers, _TOKEN)
        try:
            named = jwt.get_unverified_header(token)
            # AWS: another account's balancer signs as well, so the signer is to be compared.
            if named.get("signer") != self.arn or not _KEY_ID.fullmatch(str(named.get("kid"))):
                raise _not_named("another load balancer signed it")
            claims = jwt.decode(
                token,
                self.key(named["kid"]),
                algorithms=["ES256"],
                options={"require": ["exp"], "verify_aud": False},
            )
        except (jwt.PyJWTError, requests.RequestException) as error:
            raise _not_named(f"{_TOKEN} cannot be verified: {error}") from error
        return str(claims.get(self.claim) or "")


class TeamDoor(Door):
    """The door of a page for a team."""

    def __init__(self, app: ASGIApp, proxy: Proxy) -> None:
        """Let in whom the proxy names."""
        super().__init__(app)
        self._proxy = proxy

    async def answer(self, request: HTTPConnection) -> ASGIApp:
        """Return the application, which finds the person's name in the request, or a refusal."""
        try:
            _require_own_origin(request)
            person = _checked(await run_in_threadpool(self._proxy.person, request.headers))
        except LakegateError as error:
            return refusal("This page is for people who are logged in", f"{_ADVICE} ({error.code})")
        name = PERSON.encode()
        others = [header for header in request.scope["headers"] if header[0].lower() != name]
        request.scope["headers"] = [*others, (name, quote(person).encode())]
        return self._app


def proxy_of(environment: Mapping[str, str]) -> Proxy:
    """Return the proxy that an environment describes. Raises LakegateError NO_PROXY."""
    secret, balancer = environment.get(_SECRET, ""), environment.get(_BALANCER, "")
    if bool(secret) == bool(balancer):
        raise LakegateError("NO_PROXY", f"set either {_SECRET} or {_BALANCER} (docs/page.md)")
    if secret:
        if len(secret) < _SHORTEST:
            message = f"{_SECRET} has less than {_SHORTEST} characters: take a random one"
            raise LakegateError("NO_PROXY", message)
        return SecretProxy(secret, environment.get(_HEADER) or SecretProxy.header)
    matched = _ARN.fullmatch(balancer)
    if not matched:
        message = f"{_BALANCER} is no ARN of an Application Load Balancer: {balancer}"
        raise LakegateError("NO_PROXY", message)
    return LoadBalancer(
        balancer, _keys_of(matched[1]), environment.get(_CLAIM) or LoadBalancer.claim
    )


def _keys_of(region: str) -> Callable[[str], str]:
    """Return how to look up public keys of a region's load balancers."""

    @lru_cache(maxsize=100)
    def key(id_: str) -> str:
        address = f"https://public-keys.auth.elb.{region}.amazonaws.com/{id_}"
        answer = requests.get(address, timeout=_SECONDS)
        answer.raise_for_status()
        return answer.text

    return key


def _only(headers: Headers, name: str) -> str:
    """Return a header's only value."""
    values = headers.getlist(name)
    if len(values) != 1:
        raise _not_named(f"{name} is there {len(values)} times")
    return values[0].encode("latin-1").decode("utf-8", "replace").strip()


def _checked(person: str) -> str:
    if not person or len(person) > _LONGEST_NAME or not person.isprintable():
        raise _not_named("the name is empty or no text of one line")
    return person


def _require_own_origin(request: HTTPConnection) -> None:
    """Refuse channels that another site's page opens by the cookies of the person's login."""
    origin = request.headers.get("origin")
    own = request.headers.get("host", "")
    if request.scope["type"] == "websocket" and origin and urlsplit(origin).netloc != own:
        raise LakegateError("OTHER_ORIGIN", f"a page of {origin} opened a channel to {own}")


def _not_named(why: str) -> LakegateError:
    return LakegateError("NOT_NAMED", f"the proxy named nobody: {why}")
