"""Certificates of authorities that tests make, and TLS before servers that speak none."""

import asyncio
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

_DAY = timedelta(days=1)
_SSL_REQUEST = struct.pack("!II", 8, 80877103)  # PostgreSQL, "SSLRequest"


class Authority:
    """An authority with its own certificate."""

    def __init__(self, name: str, until: datetime | None = None) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._name = _named(name)
        self._until = until or datetime.now(UTC) + _DAY
        unsigned = self._unsigned(self._name, self._key.public_key())
        unsigned = unsigned.add_extension(x509.BasicConstraints(True, None), critical=True)
        self.pem = _pem(unsigned.sign(self._key, hashes.SHA256()))

    def certify(self, host: str, file: Path) -> Path:
        """Write a server's key and certificate for a host into the file; return the file."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        hosts = x509.SubjectAlternativeName([x509.DNSName(host)])
        unsigned = self._unsigned(_named(host), key.public_key()).add_extension(hosts, False)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        file.write_text(private + _pem(unsigned.sign(self._key, hashes.SHA256())))
        return file

    def _unsigned(self, subject: x509.Name, key: rsa.RSAPublicKey) -> x509.CertificateBuilder:
        return x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=subject,
            public_key=key,
            serial_number=x509.random_serial_number(),
            not_valid_before=self._until - 2 * _DAY,
            not_valid_after=self._until,
        )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


@contextmanager
def encrypted(port: int, certificate: Path) -> Iterator[int]:
    """Yield the port of a server that speaks PostgreSQL with TLS only, before the one at `port`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            if await reader.readexactly(8) == _SSL_REQUEST:
                writer.write(b"S")
                await writer.drain()
                await writer.start_tls(context)
                to, out = await asyncio.open_connection("127.0.0.1", port)
                await asyncio.gather(_copy(reader, out), _copy(to, writer))
        writer.close()

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield server.sockets[0].getsockname()[1]
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while text := await reader.read(64 * 1024):
            writer.write(text)
            await writer.drain()
    writer.close()


@contextmanager
def terminated(uri: str, certificate: Path) -> Iterator[str]:
    """Yield the https address of what stands before an HTTP server, as a load balancer does."""

    class Handler(BaseHTTPRequestHandler):
        def parse_request(self) -> bool:
            read = super().parse_request()
            self.command, self.verb = "any", self.command
            return read

        def do_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            port = self.headers["Host"].rpartition(":")[2]
            here = {"X-Forwarded-Proto": "https", "X-Forwarded-Port": port, "Connection": "close"}
            nessie = HTTPConnection(urlsplit(uri).netloc)
            nessie.request(self.verb, self.path, body or None, {**self.headers, **here})
            answer = nessie.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            nessie.close()

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        # In the thread of its request, which a client that refuses the certificate ends.
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"https://localhost:{server.server_port}"
        server.shutdown()
