"""Lambda: forward one HTTP request to Nessie, for operators outside its network.

The function has no token and no secret. Nessie checks the caller's token, as it does inside the
network; IAM decides who may invoke the function.

A request is `{"method", "path", "headers", "body", "offset"}`. Its answer is `{"status", "headers",
"body", "size", "digest"}`. Bodies are base64 of gzip. A body that is too long for one answer comes
in pages: the caller repeats a GET with the `offset` of the next page. Equal digests prove that the
pages belong together.
"""

import base64
import gzip
import hashlib
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import requests
from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.settings import NessieSettings
from functions.telemetry import logger
from lakegate import trust
from lakegate.errors import Permanent

# As base64 and with its headers a page stays below Lambda's 6 MB.
PAGE = 4 * 1024 * 1024
_SECONDS = (5, 25)  # to connect, and to wait for bytes: less than the function's timeout
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
_PATHS = re.compile(r"/(api|iceberg)/[!\"$-~]*")  # without "#", from where clients cut it off
_SEGMENTS = re.compile(r"[/\\]")
_PASSED_ON = ("accept", "authorization", "content-type", "x-iceberg-access-delegation")
_PASSED_BACK = ("content-type", "www-authenticate")


def forward(nessie_uri: str, request: Mapping[str, Any], page: int = PAGE) -> dict[str, Any]:
    """Send the request to Nessie at `nessie_uri` and return its answer.

    Without an answer of Nessie the status is 502 or 504, with the reason in `error`. Raises
    Permanent BAD_REQUEST for a request that is not for Nessie.
    """
    method, path = str(request.get("method")), str(request.get("path"))
    if method not in _METHODS or not _PATHS.fullmatch(path) or _is_relative(path):
        raise Permanent("BAD_REQUEST", f"{method} {path!r} is not a request for Nessie")
    try:
        answer = requests.request(
            method,
            f"{nessie_uri}{path}",
            headers=_chosen(request.get("headers", {}), _PASSED_ON),
            data=_unpacked(request.get("body", "")),
            timeout=_SECONDS,
            verify=trust.bundle(),
            allow_redirects=False,
        )
    except requests.Timeout:
        return {"status": 504, "error": f"Nessie did not answer in {_SECONDS[1]} seconds"}
    except requests.RequestException as error:
        refusal = trust.refusal(nessie_uri, error)
        return {"status": 502, "error": refusal or f"Nessie cannot be reached from inside: {error}"}
    body, offset = gzip.compress(answer.content, mtime=0), int(request.get("offset", 0))
    if method != "GET" and len(body) > page:
        return {"status": 502, "error": f"Nessie's answer to {method} is too long: {len(body)}"}
    return {
        "status": answer.status_code,
        "headers": _chosen(answer.headers, _PASSED_BACK),
        "body": base64.b64encode(body[offset : offset + page]).decode(),
        "size": len(body),
        "digest": hashlib.sha256(body).hexdigest(),
    }


def _is_relative(path: str) -> bool:
    """Return if any reader of the path may find a segment "." or "..", and leave out others."""
    read = path.partition("?")[0]
    while (decoded := unquote(read)) != read:  # by client, server or framework, so more than once
        read = decoded
    return any(each.partition(";")[0] in (".", "..") for each in _SEGMENTS.split(read))


def _unpacked(text: str) -> bytes:
    """Return the body that base64 of gzip stands for; "" is no body."""
    return gzip.decompress(base64.b64decode(text)) if text else b""


def _chosen(headers: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() in names}


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Forward the request in the event; its token is in no log."""
    return forward(NessieSettings.of(os.environ).nessie_uri, event)
