"""The server and the colours of the quality page."""

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.web.cli import main_run

import dashboard
from access.deployment import Choice
from dashboard import charts
from dashboard.serving import arguments, serve
from lakegate.errors import LakegateError

_APP = Path(dashboard.__path__[0]) / "app.py"
_LOCAL = Choice("the local stack", local=True)
_DEV = Choice("stage dev in eu-central-1", "dev")


def test_it_is_for_this_machine_alone() -> None:
    """The page is served on the local address only, without telemetry and developer menu."""
    told = arguments(_LOCAL, 8123, open_browser=False)
    assert {
        "--server.address=127.0.0.1",
        "--server.port=8123",
        "--server.headless=true",
        "--browser.gatherUsageStats=false",
        "--client.toolbarMode=minimal",
        "--client.showErrorDetails=none",
    } <= set(told)
    *_, end, choice = arguments(_DEV, 1, open_browser=True)
    assert end == "--"
    assert Choice(**json.loads(choice)) == _DEV


def test_a_port_that_is_taken_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A used port raises an error with the remedy, and no address is printed."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(LakegateError, match=rf"port {port}.*--port") as refusal:
            serve(_LOCAL, port, open_browser=False)
    assert refusal.value.code == "PORT_NOT_FREE"
    assert capsys.readouterr().out == ""


def test_streamlit_knows_all_its_arguments() -> None:
    """This release of Streamlit knows every option that it gets."""
    known = {name for parameter in main_run.params for name in parameter.opts}
    told = [
        a.partition("=")[0]
        for a in arguments(_LOCAL, 1, open_browser=True)
        if a[:2] == "--" and a != "--"
    ]
    assert set(told) <= known


def colours() -> Iterator[tuple[str, str]]:
    """Yield each outcome's colour with each background."""
    theme = charts.theme()
    for colour in (charts.GREEN, charts.ORANGE, charts.PINK, charts.BLUE, charts.GREY):
        for kind in ("light", "dark"):
            yield colour, theme[f"theme.{kind}.backgroundColor"]


@pytest.mark.parametrize(("colour", "background"), colours())
def test_colours_stand_out(colour: str, background: str) -> None:
    """A chart's colours have a contrast of at least 3 to their background (WCAG 2.2, 1.4.11)."""
    high, low = sorted((_luminance(colour), _luminance(background)), reverse=True)
    assert (high + 0.05) / (low + 0.05) >= 3


def _luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as WCAG 2.2 defines it."""
    parts = [int(part, 16) / 255 for part in re.findall("..", colour[1:])]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_without_a_stack_the_page_says_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a stack the page names the deployment and the remedy, without a traceback."""
    monkeypatch.setenv("LAKEGATE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["app.py", json.dumps(asdict(_LOCAL))])
    app = AppTest.from_file(str(_APP), default_timeout=600).run()
    assert any("NO_STACK" in text.value for text in app.text)
    assert any("lakegate up" in markdown.value for markdown in app.markdown)
    assert "`the local stack`" in [caption.value for caption in app.caption]
    assert not app.exception
