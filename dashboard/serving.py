"""Serves the page: on this machine alone, and without a word to any other."""

from contextlib import suppress
from importlib import import_module
from pathlib import Path

from streamlit.logger import set_log_level

from dashboard.look import theme
from lakegate.errors import LakegateError

_APP = Path(__file__).with_name("app.py")
# What the page's parts need and takes seconds to import, so that nobody waits for it later.
_SLOW = ("dashboard.app", "functions.tables", "reading.reader")
_LEVEL = "error"
_OPTIONS = {
    "server.address": "127.0.0.1",
    "server.fileWatcherType": "none",
    "server.runOnSave": False,
    "server.allowRunOnSave": False,
    "server.showEmailPrompt": False,
    "browser.gatherUsageStats": False,
    "browser.serverAddress": "127.0.0.1",
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "client.showErrorLinks": False,
    "logger.hideWelcomeMessage": True,
    "logger.level": _LEVEL,
}


def serve(stage: str, port: int, *, open_browser: bool) -> None:
    """Serve the page of a stage, or with "" of the local stack, until interrupted."""
    from streamlit.web import cli

    _warm_up(stage)
    print(f"The quality page is at http://127.0.0.1:{port} (Ctrl-C ends it)", flush=True)
    cli.main(arguments(stage, port, open_browser=open_browser), standalone_mode=False)


def _warm_up(stage: str) -> None:
    """Do what the first view would have to wait for, as far as the deployment answers now."""
    set_log_level(_LEVEL)  # without a server it warns of what is as it should be
    for module in _SLOW:
        import_module(module)
    from dashboard.opening import opened

    with suppress(LakegateError):
        opened(stage)


def arguments(stage: str, port: int, *, open_browser: bool) -> list[str]:
    """What Streamlit is told; its own files of settings cannot say otherwise."""
    given = {**_OPTIONS, **theme(), "server.port": port, "server.headless": not open_browser}
    options = [f"--{name}={_written(value)}" for name, value in given.items()]
    return ["run", str(_APP), *options, *(["--", stage] if stage else [])]


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
