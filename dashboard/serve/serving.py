"""Serve the page, to its user alone or to a team, without requests to any other machine."""

import json
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from secrets import token_urlsafe
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from streamlit.logger import set_log_level

from access.deployment.choice import Choice
from dashboard.charts import theme
from dashboard.serve.door import OwnDoor
from dashboard.serve.team_door import PERSON, Proxy, TeamDoor
from lakegate.errors import LakegateError

_APP = Path(__file__).parents[1] / "app.py"
# Modules that take seconds to import: they are imported at the start.
_SLOW = ("dashboard.app", "functions.adapters.iceberg.tables", "access.tables.reader")
_LEVEL = "error"
_HERE = "127.0.0.1"
_OPTIONS = {
    "server.headless": True,
    "server.fileWatcherType": "none",
    "server.runOnSave": False,
    "server.allowRunOnSave": False,
    "server.trustedUserHeaders": {},
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
    _require_free(_HERE, port)
    _warm_up(choice)
    secret = token_urlsafe(24)
    address = f"http://{_HERE}:{port}/{secret}"
    door = Middleware(OwnDoor, secret=secret, port=port)
    shown = partial(_shown, address) if open_browser else None
    print(f"The quality page of {choice.name} is at {address} (Ctrl-C ends it)", flush=True)
    _run(choice, st.App(_APP, middleware=[door], lifespan=shown), options(port))


def serve_team(choice: Choice, proxy: Proxy, host: str, port: int) -> None:
    """Serve the page of a deployment at an address, to whom a proxy names, until interrupted.

    Raises LakegateError PORT_NOT_FREE.
    """
    _require_free(host, port)
    _warm_up(choice)
    door = Middleware(TeamDoor, proxy=proxy)
    where = f"http://{host}:{port}"
    print(f"The quality page of {choice.name} waits for its proxy at {where}", flush=True)
    _run(choice, st.App(_APP, middleware=[door]), team_options(host, port))


def _run(choice: Choice, app: st.App, config: Mapping[str, object]) -> None:
    sys.argv = [str(_APP), json.dumps(asdict(choice))]  # the script's own
    app.run(config=config)


@asynccontextmanager
async def _shown(address: str, _: st.App) -> AsyncIterator[dict[str, Any]]:
    """Show an address in the browser, by a file: all users can read a program's arguments."""
    with TemporaryDirectory(prefix="lakegate-") as folder:  # which others cannot enter
        file = Path(folder) / "page.html"
        file.write_text(f'<meta http-equiv="refresh" content="0; url={address}">')
        # In a thread, since a browser in the terminal returns when it is closed.
        Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
        yield {}


def _require_free(host: str, port: int) -> None:
    """Raise PORT_NOT_FREE before the address is shown: it may be another deployment's page."""
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        message = f"the page cannot be served at port {port} of this machine: {error.strerror}"
        todo = "perhaps another one is: name another port by `--port`"
        raise LakegateError("PORT_NOT_FREE", f"{message}; {todo}") from error


def _warm_up(choice: Choice) -> None:
    """Prepare the first view, as far as the deployment answers now."""
    set_log_level(_LEVEL)  # without a server it warns of what is as it should be
    for module in _SLOW:
        import_module(module)
    from dashboard.serve.session import opened

    with suppress(LakegateError):
        opened(choice)


def options(port: int) -> Mapping[str, object]:
    """Return Streamlit's options, which override its own files of settings."""
    return {**_OPTIONS, **theme(), "server.address": _HERE, "server.port": port}


def team_options(host: str, port: int) -> Mapping[str, object]:
    """Return Streamlit's options of a page for a team: it binds each session to its person."""
    trusted = {"server.address": host, "server.trustedUserHeaders": {PERSON: PERSON}}
    return {**options(port), **trusted}
