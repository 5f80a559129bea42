"""Sign Nessie's tokens: one RSA key and a token for each role.

Nessie checks tokens by the key's public half, so there is no identity server. A token gives its
bearer the role until it expires: the function `rotate` renews it long before, `lakegate rotate`
makes new ones at once, and a new key ends the old ones.
"""

import base64
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from lakegate.errors import LakegateError, Transient

ISSUER = "lakegate"
NEEDED = ("reader", "uploader", "job", "publisher")  # by Lakegate itself
ROLES = (*NEEDED, "writer")  # of others, whose branches `lakegate gate` takes over
SIGNING_KEY = "signing-key"
NAMES = (SIGNING_KEY, *ROLES)
# The function `rotate` renews a token after two thirds of it.
LIFE = timedelta(days=90)
_LOOKS = 5
_TIMELESS: Any = {"verify_exp": False, "verify_iat": False}  # `now` returns the time
_UNVERIFIED: Any = {"verify_signature": False, **_TIMELESS}


class Keyring(Protocol):
    """The store of a deployment's signing key and tokens."""

    def read(self) -> Mapping[str, str]:
        """Return the stored texts by name, out of NAMES."""

    def write(self, name: str, text: str) -> None:
        """Store a text in place of the earlier one."""


@dataclass(frozen=True)
class Keys:
    """The signing key in PEM form and each role's token."""

    signing_key: str = field(repr=False)
    tokens: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, held: Mapping[str, str]) -> "Keys":
        """Return the keys of a keyring. Raises LakegateError NO_KEYS if one is missing."""
        if missing := [name for name in NAMES if name not in held]:
            message = f"there is no Nessie key or token for {', '.join(missing)}"
            raise LakegateError("NO_KEYS", f"{message}: run `lakegate up` or `lakegate deploy`")
        return cls(held[SIGNING_KEY], {role: held[role] for role in ROLES})

    @property
    def public_key(self) -> str:
        """Return the key that checks tokens: base64 of its DER form (`quarkus.oidc.public-key`)."""
        der = (
            loaded(self.signing_key)
            .public_key()
            .public_bytes(
                serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
        return base64.b64encode(der).decode()

    @property
    def until(self) -> datetime:
        """Return when the first of the tokens expires."""
        return min(_time(token, "exp") for token in self.tokens.values())


def keep(keyring: Keyring, now: datetime) -> Keys:
    """Create what the keyring lacks and renew what expires soon.

    After writing it reads again, until nothing is due: of several writers at the same time the
    last one sees what the others wrote, so that no token stays that the key did not sign. Raises
    Transient KEYS_MOVE if the keyring keeps changing.
    """
    for _ in range(_LOOKS):
        held = keyring.read()
        missing = due(held, now)
        if not missing:
            return Keys.of(held)
        for name, text in missing.items():
            keyring.write(name, text)
    raise Transient("KEYS_MOVE", "Nessie's keys are changed elsewhere at the same time: try again")


def rotate(
    keyring: Keyring, now: datetime, life: timedelta = LIFE, *, new_key: bool = False
) -> Keys:
    """Replace every token, with `new_key` also the key, which ends all older tokens.

    If it is interrupted, call it again, or `keep`.
    """
    held = {} if new_key else {k: v for k, v in keyring.read().items() if k == SIGNING_KEY}
    for name, text in due(held, now, life).items():
        keyring.write(name, text)
    return keep(keyring, now)


def due(held: Mapping[str, str], now: datetime, life: timedelta = LIFE) -> dict[str, str]:
    """Return what must be written to a keyring that holds `held`, the key first.

    That is what is missing, what the key did not sign, and tokens after two thirds of their time.
    """
    new = {} if SIGNING_KEY in held else {SIGNING_KEY: _new_key()}
    key = loaded(new.get(SIGNING_KEY) or held[SIGNING_KEY])
    return new | {
        role: mint(key, role, now, life)
        for role in ROLES
        if not _serves(held.get(role, ""), key, now)
    }


def mint(signing_key: rsa.RSAPrivateKey, role: str, now: datetime, life: timedelta = LIFE) -> str:
    """Return a token that gives its bearer the role."""
    claims = {
        "iss": ISSUER,
        "sub": role,
        "upn": f"lakegate-{role}",  # `role` in Nessie's rules, the committer in its log
        "iat": now,
        "exp": now + life,
    }
    return jwt.encode(claims, signing_key, algorithm="RS256")


def _serves(token: str, signing_key: rsa.RSAPrivateKey, now: datetime) -> bool:
    try:
        jwt.decode(token, signing_key.public_key(), algorithms=["RS256"], options=_TIMELESS)
    except jwt.InvalidTokenError:
        return False
    begin, end = _time(token, "iat"), _time(token, "exp")
    return end - now > (end - begin) / 3


def _time(token: str, claim: str) -> datetime:
    claims = jwt.decode(token, options=_UNVERIFIED)
    return datetime.fromtimestamp(claims[claim], UTC)


def _new_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return pem.decode()


def loaded(signing_key: str) -> rsa.RSAPrivateKey:
    """Return the signing key of a PEM text. Raises LakegateError BAD_KEY."""
    key = None
    with suppress(ValueError, TypeError, UnsupportedAlgorithm):  # which may show parts of it
        key = serialization.load_pem_private_key(signing_key.encode(), password=None)
    if not isinstance(key, rsa.RSAPrivateKey):
        message = "the signing key is no RSA key in PEM form, without a password"
        raise LakegateError("BAD_KEY", f"{message}\nPut such a key into the stage's secret.")
    return key
