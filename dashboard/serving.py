"""Serve the page: on this machine only, without requests to any other."""

import json
import socket
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from streamlit.logger import set_log_level

from access.deployment import Choice
from dashboard.charts import theme
from lakegate.errors import LakegateError

_APP = Path(__file__).with_name("app.py")
# Modules that take seconds to import: they are imported at the start.
_SLOW = ("dashboard.app", "functions.adapters.iceberg", "access.tables")
_LEVEL = "error"
_HERE = "127.0.0.1"
_OPTIONS = {
    "server.address": _HERE,
    "server.fileWatcherType": "none",
    "server.runOnSave": False,
    "server.allowRunOnSave": False,
    "server.showEmailPrompt": False,
    "browser.gatherUsageStats": False,
    "browser.serverAddress": _HERE,
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "client.showErrorLinks": False,
    "logger.hideWelcomeMessage": True,
    "logger.level": _LEVEL,
}


def serve(choice: Choice, port: int, *, open_browser: bool) -> None:
    """Serve the page of a deployment until interrupted.

    Raises LakegateError PORT_NOT_FREE.
    """
    from streamlit.web import cli

    _require_free(port)
    _warm_up(choice)
    address = f"http://{_HERE}:{port}"
    print(f"The quality page of {choice.name} is at {address} (Ctrl-C ends it)", flush=True)
    cli.main(arguments(choice, port, open_browser=open_browser), standalone_mode=False)


def _require_free(port: int) -> None:
    """Raise PORT_NOT_FREE before the address is shown: it may be another deployment's page."""
    try:
        socket.create_server((_HERE, port)).close()
    except OSError as error:
        message = f"the page cannot be served at port {port} of this machine: {error.strerror}"
        todo = "perhaps another one is: name another port by `--port`"
        raise LakegateError("PORT_NOT_FREE", f"{message}; {todo}") from error


def _warm_up(choice: Choice) -> None:
    """Prepare the first view, as far as the deployment answers now."""
    set_log_level(_LEVEL)  # without a server it warns of what is as it should be
    for module in _SLOW:
        import_module(module)
    from dashboard.session import opened

    with suppress(LakegateError):
        opened(choice)


def arguments(choice: Choice, port: int, *, open_browser: bool) -> list[str]:
    """Return Streamlit's arguments, which override its own files of settings."""
    given = {**_OPTIONS, **theme(), "server.port": port, "server.headless": not open_browser}
    options = [f"--{name}={_written(value)}" for name, value in given.items()]
    return ["run", str(_APP), *options, "--", json.dumps(asdict(choice))]


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
