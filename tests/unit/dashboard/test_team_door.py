"""A page for a team is for whom its proxy names, and for nobody else."""

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from dashboard.serve.team_door import (
    PERSON,
    SECRET,
    LoadBalancer,
    Proxy,
    SecretProxy,
    TeamDoor,
    proxy_of,
)
from lakegate.errors import LakegateError

_SECRET = "a" * 40
_ARN = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:loadbalancer/app/page/50dc6c49"
_OTHER = _ARN.replace("123456789012", "999999999999")
_KEY_ID = "6b1f0a6e-3f70-4e5d-9c3b-2f0a7b1c8d9e"
_PROXY = SecretProxy(_SECRET)
_GOOD = {SECRET: _SECRET, "X-Forwarded-Email": "ann@example.org"}


Pairs = Iterable[tuple[bytes, bytes]]


def named(proxy: Proxy, headers: Pairs, path: str = "/", kind: str = "http") -> list[str]:
    """Return the names that an application behind the door finds; none if it was not reached."""
    found: list[str] = []

    async def behind(scope: Scope, receive: Receive, send: Send) -> None:
        found.extend(Headers(scope=scope).getlist(PERSON))

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    sent: list[Message] = []
    scope: dict[str, object] = {"type": kind, "path": path, "query_string": b"", "method": "GET"}
    scope |= {"headers": list(headers), "extensions": {"websocket.http.response": {}}}
    asyncio.run(TeamDoor(behind, proxy)(scope, receive, send))
    assert found or sent[0]["status"] == HTTPStatus.FORBIDDEN
    return found


def pairs(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return headers as a server passes them on, with small letters."""
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Forwarded-Email": "ann@example.org"},
        {SECRET: _SECRET},
        {**_GOOD, SECRET: ""},
        {**_GOOD, SECRET: f"{_SECRET}a"},
        {**_GOOD, SECRET: _SECRET[:-1]},
        {**_GOOD, SECRET: "\xe9"},
        {**_GOOD, "X-Forwarded-Email": " "},
        {**_GOOD, "X-Forwarded-Email": "a" * 201},
        {"X_Forwarded_Email": "ann@example.org", SECRET: _SECRET},
        {PERSON: "ann@example.org"},
    ],
)
def test_who_is_not_named_is_refused(headers: Mapping[str, str]) -> None:
    """Without the right secret and a name no path is answered and no channel opens."""
    for path in ("/", "/_stcore/health", "/media/a", "/_stcore/upload_file/a"):
        assert named(_PROXY, pairs(headers), path) == []
    assert named(_PROXY, pairs(headers), "/_stcore/stream", "websocket") == []


@pytest.mark.parametrize("twice", [SECRET, "X-Forwarded-Email"])
def test_a_header_of_the_client_beside_the_proxys_is_refused(twice: str) -> None:
    """A proxy that adds its header without removing the client's lets nobody choose a name."""
    for value in (_GOOD[twice], "eve@example.org"):
        for order in (1, -1):
            assert named(_PROXY, [*pairs(_GOOD), *pairs({twice: value})][::order]) == []


def test_the_name_of_the_proxy_is_the_only_one() -> None:
    """The page finds the verified name, also where the client sent one under the door's name."""
    forged = [*pairs(_GOOD), *pairs({PERSON: "eve@example.org"}), (PERSON.upper().encode(), b"eve")]
    for kind in ("http", "websocket"):
        assert named(_PROXY, forged, kind=kind) == ["ann%40example.org"]
    given = {**_GOOD, "X-Forwarded-Email": "Jörg".encode().decode("latin-1")}
    assert named(_PROXY, pairs(given)) == ["J%C3%B6rg"]


def test_another_sites_page_opens_no_channel() -> None:
    """Other sites' pages send a login's cookie, too, so a channel's origin must be its own."""
    for origin, found in (("https://page.org", 1), ("https://evil.org", 0), ("null", 0)):
        headers = pairs({**_GOOD, "Host": "page.org", "Origin": origin})
        assert len(named(_PROXY, headers, kind="websocket")) == found, origin


def test_another_header_may_name_the_person() -> None:
    """The header is a setting; the default one is believed no longer then."""
    proxy = proxy_of(
        {"LAKEGATE_PAGE_PROXY_SECRET": _SECRET, "LAKEGATE_PAGE_PERSON_HEADER": "X-User"}
    )
    assert proxy.person(Headers({**_GOOD, "X-User": "ann"})) == "ann"
    with pytest.raises(LakegateError, match="NOT_NAMED"):
        proxy.person(Headers(_GOOD))


_KEY = ec.generate_private_key(ec.SECP256R1())
_STRANGER = ec.generate_private_key(ec.SECP256R1())
_PUBLIC = (
    _KEY.public_key()
    .public_bytes(
        serialization.Encoding.PEM,
        serialization.PublicFormat.SubjectPublicKeyInfo,
    )
    .decode()
)


def token(
    key: ec.EllipticCurvePrivateKey = _KEY,
    *,
    minutes: int = 2,
    claims: Mapping[str, Any] | None = None,
    **header: str,
) -> str:
    """Return what a load balancer says about Ann: claims, signed, with the signer in the head."""
    until = datetime.now(UTC) + timedelta(minutes=minutes)
    told = {"sub": "1", "email": "ann@example.org", "exp": until} if claims is None else claims
    head = {"kid": _KEY_ID, "signer": _ARN, **header}
    return jwt.encode(dict(told), key, algorithm="ES256", headers=head)


def padded(token: str) -> str:
    """Return a token as a load balancer writes it: each part is filled up with `=`."""
    parts = [f"{part}{'=' * (-len(part) % 4)}" for part in token.split(".")[:2]]
    signature = ECAlgorithm(ECAlgorithm.SHA256).sign(".".join(parts).encode(), _KEY)
    return ".".join([*parts, urlsafe_b64encode(signature).decode()])


def test_a_load_balancers_signed_word_is_believed() -> None:
    """The person is the claim of a token that the named load balancer signed."""
    asked: list[str] = []

    def key(id_: str) -> str:
        asked.append(id_)
        return _PUBLIC

    for form in (token(), padded(token())):
        headers = Headers({"x-amzn-oidc-data": form, "x-amzn-oidc-identity": "eve"})
        assert LoadBalancer(_ARN, key).person(headers) == "ann@example.org"
        assert LoadBalancer(_ARN, key, "sub").person(headers) == "1"
    assert set(asked) == {_KEY_ID}


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "a.b.c",
        token(_STRANGER),
        token(signer=_OTHER),
        token(kid="../../evil/6b1f0a6e-3f70-4e5d-9c3b-2f"),
        token(minutes=-2),
        token(claims={"email": "ann@example.org"}),
        token(claims={"sub": "1", "exp": datetime.now(UTC) + timedelta(minutes=2)}),
        token(claims={"email": None, "exp": datetime.now(UTC) + timedelta(minutes=2)}),
        jwt.encode({"email": "ann@example.org"}, "", "none", {"kid": _KEY_ID, "signer": _ARN}),
        jwt.encode(
            {"email": "ann@example.org"}, "a" * 32, "HS256", {"kid": _KEY_ID, "signer": _ARN}
        ),
    ],
)
def test_a_forged_token_names_nobody(forged: str) -> None:
    """A token of another key, signer or algorithm, one that has expired or lacks the claim."""
    balancer = LoadBalancer(_ARN, lambda _: _PUBLIC)
    assert named(balancer, pairs({"x-amzn-oidc-data": forged})) == []
    assert named(balancer, pairs({"x-amzn-oidc-data": token()})) == ["ann%40example.org"]


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"LAKEGATE_PAGE_PROXY_SECRET": "short"},
        {"LAKEGATE_PAGE_LOAD_BALANCER": "arn:aws:elasticloadbalancing:evil.org/:1:x"},
        {"LAKEGATE_PAGE_PROXY_SECRET": _SECRET, "LAKEGATE_PAGE_LOAD_BALANCER": _ARN},
    ],
)
def test_a_page_without_proof_of_its_proxy_does_not_start(environment: Mapping[str, str]) -> None:
    """Without a secret or a load balancer, with a short secret or with both, it is refused."""
    with pytest.raises(LakegateError) as refusal:
        proxy_of(environment)
    assert refusal.value.code == "NO_PROXY"


def test_the_secret_is_not_shown() -> None:
    """It is not in the proxy's text, which a log may have."""
    assert _SECRET not in repr(proxy_of({"LAKEGATE_PAGE_PROXY_SECRET": _SECRET}))
