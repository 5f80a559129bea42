"""Whom Nessie's clients trust: the authority that the deployment made, or else the public ones."""

import base64
import os
import re
import ssl
import tempfile
from functools import cache
from typing import IO

PUBLIC = "public"
_VARIABLE = "LAKEGATE_NESSIE_CA"
_WHY = re.compile(r"certificate verify failed: ([^(\n]+)")


def authority() -> bytes:
    """Return the private authority's certificate (DER), b"" where Nessie's is a public one."""
    given = os.environ.get(_VARIABLE, PUBLIC)
    return b"" if given in ("", PUBLIC) else base64.b64decode(given)


def bundle() -> str | bool:
    """Return what `requests` verifies Nessie by: a file with the authority, or the public ones."""
    private = authority()
    return str(_file(private).name) if private else True


@cache
def context(private: bytes) -> ssl.SSLContext:
    """Return what `urllib` verifies Nessie by: the authority, or the public ones for b""."""
    return ssl.create_default_context(cadata=private or None)


def refusal(uri: str, error: object) -> str:
    """Return what to tell people of a certificate that is not trusted, "" for another error."""
    why = _WHY.search(str(error))
    if not why:
        return ""
    remedy = (
        'Is another server there? If not, run `lakegate deploy` again (docs/platform.md, "TLS")'
    )
    return f"Nessie's certificate at {uri} is not trusted: {why[1].strip()}\n{remedy}"


@cache
def _file(private: bytes) -> IO[str]:
    """Return a file with the authority, which is deleted with this process."""
    made = tempfile.NamedTemporaryFile("w", suffix=".pem")  # noqa: SIM115 - it must stay
    made.write(ssl.DER_cert_to_PEM_cert(private))
    made.flush()
    return made
