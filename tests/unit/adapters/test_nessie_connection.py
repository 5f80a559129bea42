"""The catalog's connection to Nessie, which a function keeps while it is frozen."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from functions.adapters.nessie import Catalog
from lakegate.errors import Transient
from tests.fakes import wire


class Closing(BaseHTTPRequestHandler):
    """A Nessie that answers one request a connection, and closes it at the next one."""

    protocol_version = "HTTP/1.1"
    has_answered = False

    def do_GET(self) -> None:
        if self.has_answered:
            self.close_connection = True
            return
        self.has_answered = True
        body = json.dumps({"reference": {"hash": "a1"}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def served() -> Iterator[str]:
    """Yield the address of such a server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Closing)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_read_survives_that_its_connection_was_closed(served: str) -> None:
    """A function that was frozen for minutes reads on a new connection, at once."""
    catalog = Catalog(served, "token")
    assert [catalog.head("main"), catalog.head("main")] == ["a1", "a1"]


def test_a_server_in_trouble_is_no_refusal() -> None:
    """An answer of 502, as of a proxy without Nessie behind it, says that Nessie is away."""
    with (
        wire.answering(wire.json("502 Bad Gateway", {"message": "no target"})) as url,
        pytest.raises(Transient, match=r"CATALOG_UNAVAILABLE.*502"),
    ):
        Catalog(url, "token").head("main")
