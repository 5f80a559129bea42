"""Only who knows the page's secret may see it: every user of the machine can reach its port."""

import http.client
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from infra.local.parts import free_port
from tests.waiting import eventually, listening

_COMMAND = "from cli.main import app; app()"
_VIEWS = ("/", "/ingestion?id=1", "/table", "/overview", "/branch", "/inbox")
_STREAM = "/_stcore/stream"  # by which Streamlit shows everything, and learns of every press
_BELOW = ("/_stcore/health", "/_stcore/host-config", "/media/a.png", "/index.html", "/favicon.png")
_UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Protocol": "streamlit",
}


@dataclass(frozen=True)
class Answer:
    """The answer to a request, of which no redirection is followed."""

    status: int
    headers: http.client.HTTPMessage
    text: str


@dataclass(frozen=True)
class Served:
    """A page that is served, and the address that the command printed."""

    port: int
    address: str

    def ask(self, path: str, headers: dict[str, str] | None = None) -> Answer:
        """Return the answer to a request by another program of this machine."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path, headers=headers or {})
            found = connection.getresponse()
            body = b"" if found.status == http.client.SWITCHING_PROTOCOLS else found.read()
            return Answer(found.status, found.headers, body.decode(errors="replace"))
        finally:
            connection.close()

    @property
    def path(self) -> str:
        """Return the path of the address that was printed."""
        return urlsplit(self.address).path


@contextmanager
def page(home: Path, *options: str, **variables: str) -> Iterator[Served]:
    """Serve the page of a stack that is down by the command."""
    port = free_port(set())
    command = [sys.executable, "-c", _COMMAND, "page", *options, "--port", str(port)]
    own = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "LAKEGATE_"))}
    environment = {**own, "LAKEGATE_HOME": str(home), **variables}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout
            printed = server.stdout.readline()
            address = re.search(r"http://\S+", printed)
            assert address, printed
            eventually(lambda: listening(port) or server.poll() is not None)
            yield Served(port, address[0])
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with page(tmp_path_factory.mktemp("home"), "--no-open") as found:
        yield found


def cookie_of(served: Served) -> dict[str, str]:
    """Return the header with the cookie that the printed address gives."""
    return {"Cookie": served.ask(served.path).headers["Set-Cookie"].partition(";")[0]}


def test_nobody_sees_it_without_the_secret(served: Served) -> None:
    """Without the cookie each path is refused, and with a wrong one, in a page of one sentence."""
    known = cookie_of(served)["Cookie"]
    wrong = {"Cookie": f"{known[:-1]}{'a' if known[-1] != 'a' else 'b'}"}
    for path in (*_VIEWS, *_BELOW, f"{served.path}x", served.path[:-1], f"/x{served.path}"):
        for headers in ({}, wrong, {"Cookie": f"{known.partition('=')[0]}="}):
            answer = served.ask(path, headers)
            assert answer.status == http.HTTPStatus.FORBIDDEN, path
            assert "`lakegate page`" in answer.text
            assert "Set-Cookie" not in answer.headers


def test_nobody_acts_without_the_secret(served: Served) -> None:
    """The channel of all that is shown and pressed opens only with the cookie."""
    assert served.ask(_STREAM, _UPGRADE).status == http.HTTPStatus.FORBIDDEN
    opened = served.ask(_STREAM, {**_UPGRADE, **cookie_of(served)})
    assert opened.status == http.HTTPStatus.SWITCHING_PROTOCOLS


def test_the_printed_address_leads_in(served: Served) -> None:
    """It has a secret path, which a cookie keeps; afterwards all addresses work, as in alerts."""
    assert len(served.path) > 32
    answer = served.ask(served.path)
    assert (answer.status, answer.headers["Location"]) == (http.HTTPStatus.SEE_OTHER, "/")
    kept = answer.headers["Set-Cookie"].lower()
    assert "httponly" in kept
    assert "samesite=lax" in kept
    known = cookie_of(served)
    assert served.ask(served.path, known).headers["Location"] == "/"
    for path in (*_VIEWS, "/_stcore/health"):
        assert served.ask(path, known).status == http.HTTPStatus.OK


def test_a_browser_is_opened_without_telling_others(tmp_path: Path, served: Served) -> None:
    """The browser gets a file that only this user can read: others see arguments of programs.

    Each page has a secret of its own.
    """
    note = tmp_path / "note"
    keep = f"import sys; open({str(note)!r}, 'w').write(sys.argv[1])"
    script = tmp_path / "browser.py"
    script.write_text(keep)
    with page(tmp_path, BROWSER=f"{sys.executable} {script} %s") as other:
        eventually(lambda: note.exists() and note.read_text(), timeout=60)
        told = urlsplit(note.read_text())
        file = Path(told.path)
        assert told.scheme == "file"
        assert file.parent.stat().st_mode & 0o077 == 0
        assert f'url={other.address}"' in file.read_text()
        assert other.ask("/", cookie_of(served)).status == http.HTTPStatus.FORBIDDEN
        assert other.path != served.path
    assert not file.exists()
