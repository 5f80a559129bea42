"""Who is who at the local Nessie: one RSA key, and a signed token for each role."""

import base64
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

ISSUER = "lakegate"
LIFE = timedelta(days=30)
_RENEW_WHEN_LEFT = timedelta(days=7)


def public_key(directory: Path) -> str:
    """The key that checks tokens, as base64 of its DER form; the pair is made if it is missing."""
    key = serialization.load_pem_private_key(_private_key(directory).read_bytes(), password=None)
    der = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return base64.b64encode(der).decode()


def tokens(directory: Path, roles: Iterable[str], now: datetime) -> dict[str, str]:
    """A token for each role; made, for 30 days, where it is missing or has less than 7 left."""
    return {role: _token(directory, role, now) for role in roles}


def _token(directory: Path, role: str, now: datetime) -> str:
    file = directory / f"{role}.token"
    if file.exists() and _expiry(file.read_text()) - now > _RENEW_WHEN_LEFT:
        return file.read_text()
    claims = {
        "iss": ISSUER,
        "sub": role,
        "upn": f"lakegate-{role}",  # what Nessie's rules call `role`, and its log the committer
        "iat": now,
        "exp": now + LIFE,
    }
    key = _private_key(directory).read_text()
    token = jwt.encode(claims, key, algorithm="RS256")
    _write_private(file, token.encode())
    return token


def _expiry(token: str) -> datetime:
    claims = jwt.decode(token, options={"verify_signature": False, "verify_exp": False})
    return datetime.fromtimestamp(claims["exp"], UTC)


def _private_key(directory: Path) -> Path:
    file = directory / "nessie.pem"
    if not file.exists():
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        _write_private(file, pem)
        for stale in directory.glob("*.token"):  # signed with a key that is gone
            stale.unlink()
    return file


def _write_private(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".new")
    beside.touch(mode=0o600)
    beside.write_bytes(content)
    beside.replace(file)
