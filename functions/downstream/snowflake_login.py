"""Who Lakegate is at Snowflake: a user with an RSA key, proven by a token that it signs.

Snowflake documentation, "SQL API: Authenticating to the server", "Using key-pair authentication".
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
    """A user of an account, with its key; in which role and warehouse it works, and on what.

    `address` is the account's without a path.
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
        """The login that a secret's JSON tells; `name` is the secret's.

        Raises Transient BAD_SECRET, for people can mend it: the message never has what it holds.
        """
        try:
            told = json.loads(secret)
            missing = [key for key in _NEEDED if not told.get(key)]
            password = (told.get("passphrase") or "").encode() or None
            key = None if missing else load_pem_private_key(told["private_key"].encode(), password)
        except (ValueError, TypeError, AttributeError) as error:
            what = f"JSON with {', '.join(_NEEDED)}, the key in PEM form"
            message = f"the secret {name!r} must be {what} ({type(error).__name__})"
            raise Transient("BAD_SECRET", message) from None
        if not isinstance(key, RSAPrivateKey):
            lacks = f"lacks {', '.join(missing)}" if missing else "holds no RSA key"
            raise Transient("BAD_SECRET", f"the secret {name!r} {lacks}")
        return cls(
            account=str(told["account"]),
            user=str(told["user"]),
            role=str(told.get("role", "")),
            warehouse=str(told.get("warehouse", "")),
            place=Place(str(told["database"]), str(told.get("schema", ""))),
            address=str(told.get("url", "")) or _address(str(told["account"])),
            key=key,
        )

    def token(self, now: datetime) -> str:
        """A bearer token that is good for some minutes."""
        # Of an account's locator the region is no part of the name.
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
        """The public key's, as Snowflake shows it: RSA_PUBLIC_KEY_FP of DESCRIBE USER."""
        public = self.key.public_key()
        der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return f"SHA256:{base64.b64encode(hashlib.sha256(der).digest()).decode()}"


def _address(account: str) -> str:
    """Addresses have no underscores (Snowflake, "Account identifiers")."""
    return f"https://{account.replace('_', '-').lower()}.snowflakecomputing.com"
