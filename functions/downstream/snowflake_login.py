"""Authenticate to Snowflake as a user with an RSA key, by a signed token.

Snowflake documentation, "SQL API: Authenticating to the server", "Using key-pair
authentication".
"""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from functions.downstream.snowflake_sql import Place
from lakegate.errors import Transient

_LIFE = timedelta(minutes=5)  # Snowflake takes up to an hour
_NEEDED = ("account", "user", "private_key", "database")


@dataclass(frozen=True)
class Login:
    """A user of an account with its key, role, warehouse and place of tables.

    `address` is the account's, without a path.
    """

    account: str
    user: str
    role: str
    warehouse: str
    place: Place
    address: str
    key: RSAPrivateKey = field(repr=False)

    @classmethod
    @lru_cache(maxsize=2)  # the key is checked, which takes a tenth of a second
    def read(cls, secret: str, name: str) -> "Login":
        """Return the login in a secret's JSON; `name` is the secret's.

        Raises Transient BAD_SECRET, which never contains the secret's text.
        """
        try:
            login = json.loads(secret)
            missing = [key for key in _NEEDED if not login.get(key)]
            password = (login.get("passphrase") or "").encode() or None
            key = None if missing else load_pem_private_key(login["private_key"].encode(), password)
        except (ValueError, TypeError, AttributeError) as error:
            message = (
                f"the secret {name!r} must be JSON with {', '.join(_NEEDED)}, the key in PEM form "
                f"({type(error).__name__})"
            )
            raise Transient("BAD_SECRET", message) from None
        if not isinstance(key, RSAPrivateKey):
            lacks = f"lacks {', '.join(missing)}" if missing else "holds no RSA key"
            raise Transient("BAD_SECRET", f"the secret {name!r} {lacks}")
        return cls(
            account=str(login["account"]),
            user=str(login["user"]),
            role=str(login.get("role", "")),
            warehouse=str(login.get("warehouse", "")),
            place=Place(str(login["database"]), str(login.get("schema", ""))),
            address=str(login.get("url", "")) or _address(str(login["account"])),
            key=key,
        )

    def token(self, now: datetime) -> str:
        """Return a bearer token that is valid for some minutes."""
        # The name excludes the region of an account's locator.
        subject = f"{self.account.partition('.')[0]}.{self.user}".upper()
        claims = {
            "iss": f"{subject}.{self.fingerprint}",
            "sub": subject,
            "iat": now,
            "exp": now + _LIFE,
        }
        return jwt.encode(claims, self.key, algorithm="RS256")

    @property
    def fingerprint(self) -> str:
        """Return the public key's fingerprint, which DESCRIBE USER shows as RSA_PUBLIC_KEY_FP."""
        public = self.key.public_key()
        der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return f"SHA256:{base64.b64encode(hashlib.sha256(der).digest()).decode()}"


def _address(account: str) -> str:
    """Return the account's address, which has no underscores (Snowflake, "Account identifiers")."""
    return f"https://{account.replace('_', '-').lower()}.snowflakecomputing.com"
