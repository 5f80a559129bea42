"""An HTTP server on this machine that forwards requests to a Nessie inside a network.

Each request goes to the function on_nessie_request, which IAM guards; so requests and pyiceberg
work unchanged outside the network. The server's address has a secret path, so that no other user of
this machine can use it.
"""

import base64
import gzip
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_urlsafe
from threading import Thread
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from infra.local import processes
from lakegate.errors import LakegateError, Transient

_SECONDS = 65  # longer than the function's timeout
_TRIES = 3  # of reading the pages of an answer that changes meanwhile
_SAFE = ("GET", "HEAD")
_HERE = "127.0.0.1"
# The answer that tells Iceberg's clients where to send all further requests.
_CONFIG = re.compile(r"/iceberg(/[^/?]+)?/v1/config(\?.*)?")
_ADDRESSES = "nessie.core-base-uri", "nessie.catalog-base-uri", "nessie.iceberg-base-uri"
_REMEDIES = {
    "AccessDeniedException": "ask for the right lambda:InvokeFunction on it",
    "ResourceNotFoundException": "deploy again: this release adds it",
    "TooManyRequestsException": "the account's Lambda concurrency is used up; try again",
    "RequestEntityTooLargeException": "the request is too long for a function",
}


@dataclass(frozen=True)
class Answer:
    """Nessie's answer to a request."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Forwarder:
    """The function that forwards requests to Nessie."""

    def __init__(self, function: str, safe: Any, changing: Any) -> None:
        """Use boto3's `lambda` clients: `safe` repeats failed calls, `changing` does not."""
        self._function = function
        self._safe = safe
        self._changing = changing

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Return Nessie's answer, whole. Raises Transient NESSIE_FUNCTION_FAILED."""
        packed = base64.b64encode(gzip.compress(body)).decode() if body else ""
        request = {"method": method, "path": path, "headers": dict(headers), "body": packed}
        for _ in range(_TRIES):
            pages = list(self._pages(request))
            if len({page["digest"] for page in pages}) == 1:
                whole = b"".join(base64.b64decode(page["body"]) for page in pages)
                return Answer(pages[0]["status"], pages[0]["headers"], gzip.decompress(whole))
        raise self._failed("Nessie's answer changes while it is read; try again")

    def _pages(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        offset, size = 0, 1
        while offset < size:
            page = self._invoke({**request, "offset": offset})
            yield page
            size = page["size"]
            offset += len(base64.b64decode(page["body"]))

    def _invoke(self, request: Mapping[str, Any]) -> dict[str, Any]:
        client = self._safe if request["method"] in _SAFE else self._changing
        try:
            answer = client.invoke(
                FunctionName=self._function, Payload=json.dumps(request).encode()
            )
            page: dict[str, Any] = json.loads(answer["Payload"].read())
        except ClientError as error:
            remedy = _REMEDIES.get(error.response["Error"]["Code"], "")
            raise self._failed(f"{error}{f'; {remedy}' if remedy else ''}") from error
        except (BotoCoreError, ValueError) as error:
            raise self._failed(str(error)) from error
        if "FunctionError" in answer:
            raise self._failed(str(page.get("errorMessage", page)))
        if "error" in page:
            raise self._failed(page["error"])
        return page

    def _failed(self, why: str) -> Transient:
        message = f"the function {self._function} did not forward the request: {why}"
        return Transient("NESSIE_FUNCTION_FAILED", message)


def serve(forwarder: Forwarder) -> str:
    """Start the server, which ends with this process; return its address, without a slash."""
    path = f"/{token_urlsafe(24)}"
    server = _Server((_HERE, 0), partial(_Handler, forwarder, path))
    Thread(target=server.serve_forever, name="nessie", daemon=True).start()
    return f"http://{_HERE}:{server.server_port}{path}"


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error of a request, unless its client has gone."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 64 * 1024  # headers and body in one packet

    def __init__(self, forwarder: Forwarder, path: str, *connection: Any) -> None:
        self._forwarder = forwarder
        self._secret = path
        super().__init__(*connection)

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        own, path = self.path[: len(self._secret)], self.path[len(self._secret) :]
        if not compare_digest(own.encode(), self._secret.encode()):
            self._write(_refusal(404, "this address is another process's way to Nessie"))
            return
        try:
            answer = self._forwarder.send(self.command, path, dict(self.headers), body)
        except LakegateError as error:
            answer = _refusal(502, error.message)
        if _CONFIG.fullmatch(path) and answer.status == 200:
            host = self.headers.get("Host", "")
            answer = _redirected(answer, f"http://{host}{self._secret}/iceberg/")
        self._write(answer)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815  http.server's names

    def _write(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, *_: Any) -> None:
        """Log nothing: the address is secret."""


def _refusal(status: int, message: str) -> Answer:
    """Return an error document that clients of Nessie and of Iceberg's catalogs understand."""
    error = {"message": message, "code": status, "type": "NotForwarded"}
    document = {"status": status, "message": message, "errorCode": "UNKNOWN", "error": error}
    headers = {"Content-Type": "application/json"}
    return Answer(status, headers, json.dumps(document).encode())


def _redirected(answer: Answer, iceberg: str) -> Answer:
    """Return the catalog's configuration with this server's address instead of Nessie's own."""
    document = json.loads(answer.body)
    kept = {k: v for k, v in document["overrides"].items() if k not in _ADDRESSES}
    body = json.dumps({**document, "overrides": {**kept, "uri": iceberg}}).encode()
    return Answer(answer.status, answer.headers, body)


@cache
def address(function: str, endpoint: str = "") -> str:
    """Return the address of a server for this function; a process has one for each.

    `endpoint` is the AWS endpoint that the environment names, if any. No proxy gets its requests.
    """
    processes.call_directly()
    return serve(Forwarder(function, _client(attempts=4), _client(attempts=1)))


def _client(attempts: int) -> Any:
    retries = {"mode": "standard", "total_max_attempts": attempts}
    return boto3.client("lambda", config=Config(read_timeout=_SECONDS, retries=retries))
