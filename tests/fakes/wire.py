"""Misbehaving servers that test an adapter's handling of their answers."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from json import dumps

BROKEN_ANSWERS = {
    "nothing": b"",
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
    "half a JSON": b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"ok": tr',
    "a proxy's page": b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\n\r\n<p>\xff",
    "an empty error": b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
}


def json(status: str, body: object) -> bytes:
    """Return an answer with a JSON body."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n\r\n"
    return head.encode() + dumps(body).encode()


@contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """Yield the address of a server that gives each request the next answer and hangs up.

    It repeats the last answer for all further requests.
    """
    coming = chain(answers, repeat(answers[-1]))

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            length = 0
            for line in iter(self.rfile.readline, b"\r\n"):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            self.rfile.read(length)
            self.wfile.write(next(coming))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@contextmanager
def silent() -> Iterator[str]:
    """Yield the address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def nobody() -> str:
    """Return an address without a listener; its port is below all that are assigned."""
    return "http://127.0.0.1:1"
