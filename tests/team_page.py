"""The page of a team as its image starts it, behind a proxy that logs people in."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe

from access.deployment.checkout import ROOT
from infra.local.parts import free_port
from tests.login_proxy import login_proxy
from tests.page import bare_environment, serving


@dataclass(frozen=True)
class Team:
    """The proxy's port, the page's own one behind it, and what the proxy proves itself by."""

    port: int
    behind: int
    secret: str

    @property
    def address(self) -> str:
        """Return the proxy's address."""
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def team_served(home: Path) -> Iterator[Team]:
    """Serve the page of the stack in a folder by the image's command, in its environment."""
    port, secret = free_port(set()), token_urlsafe(32)
    behind = free_port({port})
    environment = bare_environment() | image_environment()
    environment |= {"LAKEGATE_HOME": str(home), "LAKEGATE_PAGE_PROXY_SECRET": secret}
    with (
        serving(image_command(behind), environment, behind),
        login_proxy(port, behind, {"Lakegate-Proxy-Secret": secret}),
    ):
        yield Team(port, behind, secret)


def instructions() -> dict[str, str]:
    """Return the last instruction of each kind in the Dockerfile, on one line."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {name: rest for name, _, rest in (line.partition(" ") for line in lines)}


def image_command(port: int) -> list[str]:
    """Return the command that the image starts, served on this machine, at a port."""
    found = instructions()
    words: list[str] = json.loads(found["ENTRYPOINT"]) + json.loads(found["CMD"])
    program, *arguments = words
    assert arguments[-2:] == ["--host", "0.0.0.0"]  # noqa: S104 - the proxy's container reaches it
    own = [*arguments[:-1], "127.0.0.1", "--port", str(port)]
    return [str(Path(sys.executable).with_name(program)), *own]


def image_environment() -> dict[str, str]:
    """Return the image's own variables, but for its home."""
    pairs = (pair.partition("=") for pair in instructions()["ENV"].split())
    return {name: value for name, _, value in pairs if name != "HOME"}
