"""Who is who at Nessie: one RSA key, and a token for each role that it signed.

Nessie checks tokens by the key's public half, so there is no identity server. Whoever reads a
token is its role until it ends: `lakegate rotate` makes new ones, and with a new key the old end.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from lakegate.errors import LakegateError, Transient

ISSUER = "lakegate"
ROLES = ("reader", "uploader", "job", "publisher")
SIGNING_KEY = "signing-key"
NAMES = (SIGNING_KEY, *ROLES)
# A stack that is deployed once in two months never meets the end of a token.
LIFE = timedelta(days=90)
_LOOKS = 5
_TIMELESS: Any = {"verify_exp": False, "verify_iat": False}  # `now` says what time it is


class Keyring(Protocol):
    """Where a deployment's signing key and tokens lie."""

    def read(self) -> Mapping[str, str]:
        """The texts that are there, by their names of NAMES."""

    def write(self, name: str, text: str) -> None:
        """Put a text in the place of the one that is there."""


@dataclass(frozen=True)
class Keys:
    """The signing key in PEM form, and each role's token."""

    signing_key: str = field(repr=False)
    tokens: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, held: Mapping[str, str]) -> "Keys":
        """The keys that a keyring holds. Raises LakegateError NO_KEYS where one is missing."""
        if missing := [name for name in NAMES if name not in held]:
            message = f"there is no Nessie key or token for {', '.join(missing)}"
            raise LakegateError("NO_KEYS", f"{message}: run `lakegate up` or `lakegate deploy`")
        return cls(held[SIGNING_KEY], {role: held[role] for role in ROLES})

    @property
    def public_key(self) -> str:
        """What Nessie checks tokens by: base64 of the DER form (`quarkus.oidc.public-key`)."""
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
        """When the first of the tokens ends."""
        return min(_time(token, "exp") for token in self.tokens.values())


def keep(keyring: Keyring, now: datetime) -> Keys:
    """Make what the keyring lacks and renew what nears its end; what is good stays as it is.

    It looks again after it wrote, until nothing is due: of several that write at once the last one
    sees all that the others did, so that no token is left beside a key that did not sign it.
    Raises Transient KEYS_MOVE where the keyring never comes to rest.
    """
    for _ in range(_LOOKS):
        held = keyring.read()
        missing = due(held, now)
        if not missing:
            return Keys.of(held)
        for name, text in missing.items():
            keyring.write(name, text)
    raise Transient("KEYS_MOVE", "somebody else changes Nessie's keys at the same time: try again")


def rotate(
    keyring: Keyring, now: datetime, life: timedelta = LIFE, *, new_key: bool = False
) -> Keys:
    """Make every token anew, with `new_key` also the key, so that all older tokens end.

    Interrupted, it is finished by being called again, or by `keep`.
    """
    held = {} if new_key else {k: v for k, v in keyring.read().items() if k == SIGNING_KEY}
    for name, text in due(held, now, life).items():
        keyring.write(name, text)
    return keep(keyring, now)


def due(held: Mapping[str, str], now: datetime, life: timedelta = LIFE) -> dict[str, str]:
    """What must be written to a keyring that holds `held`, the key first.

    That is what is missing, what the key did not sign, and tokens of which two thirds have passed.
    """
    new = {} if SIGNING_KEY in held else {SIGNING_KEY: _new_key()}
    key = loaded(new.get(SIGNING_KEY) or held[SIGNING_KEY])
    return new | {
        role: mint(key, role, now, life)
        for role in ROLES
        if not _serves(held.get(role, ""), key, now)
    }


def mint(signing_key: rsa.RSAPrivateKey, role: str, now: datetime, life: timedelta = LIFE) -> str:
    """A token that says that its bearer is in the role."""
    claims = {
        "iss": ISSUER,
        "sub": role,
        "upn": f"lakegate-{role}",  # what Nessie's rules call `role`, and its log the committer
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
    claims = jwt.decode(token, options={"verify_signature": False, **_TIMELESS})
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
    """The signing key of a PEM text. Raises LakegateError BAD_KEY."""
    key = serialization.load_pem_private_key(signing_key.encode(), password=None)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise LakegateError("BAD_KEY", "the signing key is no RSA key")
    return key
