"""Requests to Nessie from outside its network, through the function and the local server."""

import io
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import requests
from botocore.exceptions import ClientError, ReadTimeoutError

from access.deployment.forwarding import Forwarder, serve
from functions.adapters.nessie import Catalog
from functions.on_nessie_request import PAGE, forward, handler
from lakegate.errors import Permanent, Transient
from tests.fakes import wire
from tests.fakes.lambda_context import Context
from tests.waiting import PATIENCE, eventually

_LONG = os.urandom(5000)  # gzip does not shorten it


@dataclass
class Nessie:
    """A server that keeps each request and answers what the test wants."""

    answer: Callable[[int], tuple[int, bytes]] = lambda nth: (200, b'{"ok": true}')
    requests: list[tuple[str, str, bytes]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    location: str = ""

    @contextmanager
    def running(self) -> Iterator[str]:
        """Yield the address."""
        nessie = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                nessie.requests.append((self.command, self.path, body))
                nessie.headers.append({k.lower(): v for k, v in self.headers.items()})
                status, text = nessie.answer(len(nessie.requests))
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Server-Secret", "internal")
                self.send_header("Location", nessie.location)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(text)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _answer  # noqa: N815

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}"
            server.shutdown()


@dataclass
class Lambda:
    """AWS Lambda with the function, whose pages have `page` bytes."""

    nessie: str
    page: int = PAGE
    asked: list[dict[str, Any]] = field(default_factory=list)

    def invoke(self, **call: Any) -> dict[str, Any]:
        self.asked.append(json.loads(call["Payload"]))
        answer = forward(self.nessie, self.asked[-1], self.page)
        return {"Payload": io.BytesIO(json.dumps(answer).encode())}


@dataclass
class Refusing:
    """AWS Lambda that does not run the function, or a function that fails."""

    error: Exception | None = None
    answer: bytes = b""

    def invoke(self, **_: Any) -> dict[str, Any]:
        if self.error:
            raise self.error
        return {"FunctionError": "Unhandled", "Payload": io.BytesIO(self.answer)}


@contextmanager
def way(nessie: Nessie, page: int = PAGE) -> Iterator[str]:
    """Yield the local server's address for this Nessie."""
    with nessie.running() as uri:
        function = Lambda(uri, page)
        yield serve(Forwarder("f", function, function))


def forwarder(client: Any) -> Forwarder:
    return Forwarder("f", client, client)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_a_request_arrives_as_it_was_sent(method: str) -> None:
    """Method, path, query, token and body reach Nessie; its status and body come back."""
    nessie = Nessie(lambda _: (409, b'{"why": "a conflict \xc3\xa4"}'))
    with way(nessie) as uri:
        path = "/api/v2/trees/ingest%2Fa@1f/history?filter=a%20%26%26%20b&max-records=2"
        token = {"Authorization": "Bearer t", "Content-Type": "application/json"}
        answer = requests.request(method, uri + path, headers=token, data=b'{"a": 1}', timeout=30)
    assert nessie.requests == [(method, path, b'{"a": 1}')]
    assert nessie.headers[0]["authorization"] == "Bearer t"
    assert nessie.headers[0]["content-type"] == "application/json"
    assert (answer.status_code, answer.json()) == (409, {"why": "a conflict ä"})
    assert answer.headers["Content-Type"] == "application/json"


def test_only_chosen_headers_pass() -> None:
    """Cookies do not reach Nessie, and headers of the network do not come back."""
    nessie = Nessie()
    with way(nessie) as uri:
        answer = requests.get(f"{uri}/api/v2/config", headers={"Cookie": "a=b"}, timeout=30)
    assert "cookie" not in nessie.headers[0]
    assert "authorization" not in nessie.headers[0]
    assert "Server-Secret" not in answer.headers


def test_a_long_answer_comes_in_pages() -> None:
    """An answer that no function may return at once arrives whole, by as many calls as needed."""
    nessie = Nessie(lambda _: (200, _LONG))
    with way(nessie, page=1000) as uri:
        answer = requests.get(f"{uri}/api/v2/trees", timeout=30)
    assert answer.content == _LONG
    assert len(nessie.requests) == 6


def test_pages_of_different_answers_are_not_mixed() -> None:
    """An answer that changes between two pages is read again from its beginning."""
    older, newer = b"a" + _LONG, b"b" + _LONG
    with way(Nessie(lambda nth: (200, older if nth < 3 else newer)), page=1000) as uri:
        assert requests.get(f"{uri}/api/v2/trees", timeout=30).content == newer
    changing = Nessie(lambda nth: (200, bytes([nth]) + _LONG))
    with way(changing, page=1000) as uri:
        answer = requests.get(f"{uri}/api/v2/trees", timeout=30)
    assert answer.status_code == 502
    assert "changes while it is read" in answer.json()["message"]


def test_a_write_is_sent_once() -> None:
    """A long answer to a write is an error: the write is not sent again for its second page."""
    nessie = Nessie(lambda _: (200, _LONG))
    with way(nessie, page=1000) as uri:
        answer = requests.post(f"{uri}/api/v2/trees", timeout=30)
    assert answer.status_code == 502
    assert "too long" in answer.json()["message"]
    assert len(nessie.requests) == 1


def test_a_failed_call_is_repeated_only_for_reads() -> None:
    """Reads use the client that repeats failed calls, writes the one that does not."""
    with Nessie().running() as uri:
        safe, changing = Lambda(uri), Lambda(uri)
        forwards = Forwarder("f", safe, changing)
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE"):
            forwards.send(method, "/api/v2/config", {}, b"")
    assert [each["method"] for each in safe.asked] == ["GET", "HEAD"]
    assert [each["method"] for each in changing.asked] == ["POST", "PUT", "DELETE"]


@pytest.mark.parametrize(
    "path",
    [
        "@elsewhere/api/v2",
        "//elsewhere/api/v2",
        "http://elsewhere/api/v2",
        "/q/health",
        "/api/v2\r\nHost: elsewhere",
        "/api/../q/metrics",
        "/api/v2/..",
        "/api/v2/./config",
        "/api/..?a=b",
        "/api/..#a",
        "/api/%2e%2E/q/metrics",
        "/api/.%2e/q/metrics",
        "/api/%252e%252e/q/metrics",
        "/api/%25252e%25252e%25252fq/metrics",
        "/api/v2%2f..%2f..%2fq/metrics",
        "/api/..\\q/metrics",
        "/api/v2%5c..%5C..%5cq/metrics",
        "/api/..;a=b/q/metrics",
        "/api/..%3ba=b/q/metrics",
    ],
)
def test_the_function_reaches_nessies_paths_alone(path: str) -> None:
    """Another host or path is refused before anything is sent, however its `..` are written."""
    nessie = Nessie()
    with nessie.running() as uri, pytest.raises(Permanent, match="BAD_REQUEST"):
        forward(uri, {"method": "GET", "path": path})
    assert not nessie.requests


@pytest.mark.parametrize("request_", [{"method": "CONNECT", "path": "/api/v2"}, {}])
def test_what_is_no_request_to_nessie_is_refused(request_: dict[str, str]) -> None:
    """So is another method, and an event that has none."""
    with pytest.raises(Permanent, match="BAD_REQUEST"):
        forward(wire.nobody(), request_)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2/trees/ingest%2Fshop.orders%2F..a.csv-1f@ab/contents/shop.%E2%80%A6",
        "/api/v2/trees/main@/history?filter=a%20%2F..%2F%20b&from=../..",
        "/iceberg/v1/main%257Cs3:%252F%252Flake/namespaces/shop/tables/a...b",
    ],
)
def test_dots_in_names_pass(path: str) -> None:
    """Dots within a name or in the query arrive as they were sent."""
    nessie = Nessie()
    with nessie.running() as uri:
        assert forward(uri, {"method": "GET", "path": path})["status"] == 200
    assert nessie.requests == [("GET", path, b"")]


def test_no_redirection_is_followed() -> None:
    """A redirection comes back as it is: the request and its token go to no other address."""
    other = Nessie()
    with other.running() as elsewhere:
        nessie = Nessie(lambda _: (307, b""), location=f"{elsewhere}/api/v2/config")
        with nessie.running() as uri:
            answer = forward(uri, {"method": "GET", "path": "/api/v2/config"})
    assert (answer["status"], other.requests) == (307, [])


def test_other_users_of_the_machine_are_refused() -> None:
    """A request without the secret path does not reach the function, and each path is new."""
    nessie = Nessie()
    with way(nessie) as uri, way(nessie) as another:
        at, _, secret = uri.rpartition("/")
        assert len(secret) >= 32
        assert secret != another.rpartition("/")[2]
        for wrong in ("", "/", f"/{secret[:-1]}", f"/{'x' * len(secret)}"):
            answer = requests.get(f"{at}{wrong}/api/v2/config", timeout=30)
            assert answer.status_code == 404
        assert at.startswith("http://127.0.0.1:")
    assert not nessie.requests


def test_catalogs_keep_using_the_local_address() -> None:
    """The configuration of an Iceberg catalog names the local server, not Nessie's own address."""
    inside = "http://nessie.internal:19120/"
    overrides = {
        "uri": f"{inside}iceberg/",
        "nessie.core-base-uri": f"{inside}api/",
        "nessie.is-nessie-catalog": "true",
    }
    text = json.dumps({"defaults": {"prefix": "main"}, "overrides": overrides}).encode()
    with way(Nessie(lambda _: (200, text))) as uri:
        for path in ("/iceberg/v1/config", "/iceberg/main%40ab/v1/config?warehouse=lake"):
            found = requests.get(uri + path, timeout=30).json()
            assert found["defaults"] == {"prefix": "main"}
            assert found["overrides"] == {
                "uri": f"{uri}/iceberg/",
                "nessie.is-nessie-catalog": "true",
            }


def test_a_client_that_has_gone_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    """An answer that comes too late for its client prints nothing."""
    released, before = threading.Event(), set(threading.enumerate())

    def late(_: int) -> tuple[int, bytes]:
        released.wait(PATIENCE)
        return 200, bytes(50_000_000)

    with way(Nessie(late)) as uri:
        with pytest.raises(requests.ReadTimeout):
            requests.get(f"{uri}/api/v2/trees", timeout=0.2)
        released.set()
        eventually(lambda: not _answering() - before)
    assert capsys.readouterr().err == ""


def _answering() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if "process_request" in each.name}


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "Invoke")


@pytest.mark.parametrize(
    ("client", "reason"),
    [
        (Refusing(refusal("AccessDeniedException")), "f did not .*lambda:InvokeFunction"),
        (Refusing(refusal("ResourceNotFoundException")), "deploy again"),
        (Refusing(refusal("TooManyRequestsException")), "concurrency"),
        (Refusing(ReadTimeoutError(endpoint_url="https://lambda")), "timeout"),
        (Refusing(answer=b'{"errorMessage": "Task timed out after 60.00 seconds"}'), "timed out"),
        (Lambda(wire.nobody()), "cannot be reached from inside"),
    ],
)
def test_why_a_request_was_not_forwarded_is_reported(client: Any, reason: str) -> None:
    """Every failure names the function, the reason and, where there is one, the remedy."""
    with pytest.raises(Transient, match=reason):
        forwarder(client).send("GET", "/api/v2/config", {}, b"")
    with pytest.raises(Transient, match=reason):
        Catalog(serve(forwarder(client)), "t").tip()
    with pytest.raises(Transient, match=reason):
        Catalog(serve(forwarder(client)), "t").head("main")


def test_the_handler_reads_the_address_from_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function calls the Nessie of its own environment."""
    with Nessie().running() as uri:
        monkeypatch.setenv("LAKEGATE_NESSIE_URI", uri)
        context: Any = Context()
        answer: Any = handler({"method": "GET", "path": "/api/v2/config"}, context)
    assert answer["status"] == 200
