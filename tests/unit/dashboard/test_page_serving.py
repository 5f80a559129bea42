"""The server and the colours of the quality page."""

import json
import socket
from dataclasses import asdict
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import dashboard
from access.deployment.choice import Choice
from dashboard.serve.serving import options, serve
from lakegate.errors import LakegateError

_APP = Path(dashboard.__path__[0]) / "app.py"
_LOCAL = Choice("the local stack", local=True)


def test_it_is_for_this_machine_alone() -> None:
    """The page is served on the local address only, without telemetry and developer menu."""
    assert {
        "server.address": "127.0.0.1",
        "server.port": 8123,
        "browser.gatherUsageStats": False,
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
    }.items() <= options(8123).items()


def test_a_port_that_is_taken_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A used port raises an error with the remedy, and no address is printed."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(LakegateError, match=rf"port {port}.*--port") as refusal:
            serve(_LOCAL, port, open_browser=False)
    assert refusal.value.code == "PORT_NOT_FREE"
    assert capsys.readouterr().out == ""


def test_without_a_stack_the_page_says_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a stack the page names the deployment and the remedy, without a traceback."""
    monkeypatch.setenv("LAKEGATE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["app.py", json.dumps(asdict(_LOCAL))])
    app = AppTest.from_file(str(_APP), default_timeout=600).run()
    assert any("NO_STACK" in text.value for text in app.text)
    assert any("lakegate up" in markdown.value for markdown in app.markdown)
    assert "the local stack" in [text.value for text in app.text]
    assert [title.value for title in app.title] == ["Inbox"]
    assert not app.exception
