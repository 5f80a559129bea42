"""Only who knows the page's secret may see it: every user of the machine can reach its port."""

import http.client
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from shlex import quote

import pytest

from tests.page import Served, bare_environment, served
from tests.waiting import PATIENCE, eventually

_VIEWS = ("/", "/ingestion?id=1", "/table", "/overview", "/branch", "/inbox")
_STREAM = "/_stcore/stream"  # by which Streamlit shows everything, and learns of every press
_BELOW = ("/_stcore/health", "/_stcore/host-config", "/media/a.png", "/index.html", "/favicon.png")
UPGRADE = {
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


def ask(page: Served, path: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Return the answer to a request by another program of this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=PATIENCE)
    try:
        connection.request("GET", path, headers=headers or {})
        found = connection.getresponse()
        body = b"" if found.status == HTTPStatus.SWITCHING_PROTOCOLS else found.read()
        return Answer(found.status, found.headers, body.decode())
    finally:
        connection.close()


def secret_path(page: Served) -> str:
    """Return the path of the address that was printed."""
    return page.entrance.removeprefix(page.address)


def cookie_of(page: Served) -> dict[str, str]:
    """Return the header with the cookie that the printed address gives."""
    return {"Cookie": ask(page, secret_path(page)).headers["Set-Cookie"].partition(";")[0]}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve the page of a stack that is down."""
    home = {"LAKEGATE_HOME": str(tmp_path_factory.mktemp("home"))}
    with served(bare_environment() | home, "--no-open") as found:
        yield found


def test_nobody_sees_it_without_the_secret(page: Served) -> None:
    """Without the cookie, or with a wrong one, each path is refused and says what to do."""
    known, path = cookie_of(page)["Cookie"], secret_path(page)
    wrong = f"{known[:-1]}{'a' if known[-1] != 'a' else 'b'}"
    for asked in (*_VIEWS, *_BELOW, f"{path}x", path[:-1], f"/x{path}", f"/?{path[1:]}"):
        for cookie in ("", wrong, f"{known.partition('=')[0]}=", "lakegate-0=\xe9"):
            answer = ask(page, asked, {"Cookie": cookie})
            assert answer.status == HTTPStatus.FORBIDDEN, asked
            assert "lakegate page" in answer.text
            assert "Set-Cookie" not in answer.headers


def test_nobody_acts_without_the_secret(page: Served) -> None:
    """The channel of all that is shown and pressed opens only with the cookie."""
    assert ask(page, _STREAM, UPGRADE).status == HTTPStatus.FORBIDDEN
    opened = ask(page, _STREAM, UPGRADE | cookie_of(page))
    assert opened.status == HTTPStatus.SWITCHING_PROTOCOLS


def test_the_printed_address_leads_in(page: Served) -> None:
    """It has a secret path, which a cookie keeps; then all addresses work, as those in alerts."""
    path, known = secret_path(page), cookie_of(page)
    assert len(path) > 32
    for headers in ({}, known):
        answer = ask(page, path, headers)
        assert (answer.status, answer.headers["Location"]) == (HTTPStatus.SEE_OTHER, "/")
    kept = answer.headers["Set-Cookie"].lower()
    assert "httponly" in kept
    assert "samesite=lax" in kept
    for asked in (*_VIEWS, "/_stcore/health"):
        assert ask(page, asked, known).status == HTTPStatus.OK


def test_a_browser_is_opened_without_telling_others(tmp_path: Path, page: Served) -> None:
    """The browser gets a file that only this user can read: others see arguments of programs.

    Each page has a secret of its own.
    """
    note, script = tmp_path / "note", tmp_path / "browser.py"
    script.write_text(f"import sys; open({str(note)!r}, 'w').write(sys.argv[1])")
    told = {"LAKEGATE_HOME": str(tmp_path), "BROWSER": f"{quote(sys.executable)} {script} %s"}
    with served(bare_environment() | told) as other:
        eventually(lambda: note.exists() and note.read_text())
        file = Path(note.read_text().removeprefix("file://"))
        assert file.parent.stat().st_mode & 0o077 == 0
        assert f'url={other.entrance}"' in file.read_text()
        assert ask(other, "/", cookie_of(page)).status == HTTPStatus.FORBIDDEN
        of_port = cookie_of(other)["Cookie"].partition("=")[0]
        stolen = f"{of_port}={secret_path(page)[1:]}"
        assert ask(other, "/", {"Cookie": stolen}).status == HTTPStatus.FORBIDDEN
    assert not file.exists()
