"""The quality page as its command serves it, for tests and benchmarks."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from playwright.sync_api import BrowserContext

from infra.local.parts import free_port
from tests.waiting import eventually, listening

_COMMAND = "from cli.main import app; app()"


@dataclass(frozen=True)
class Served:
    """A page that is served at a port; its `entrance` is the address that the command printed."""

    port: int
    entrance: str

    @property
    def address(self) -> str:
        """Return the address to which the views' paths are added."""
        return f"http://127.0.0.1:{self.port}"

    def enter(self, context: BrowserContext) -> None:
        """Give a browser the page's secret."""
        context.request.get(self.entrance, max_redirects=0)


def bare_environment() -> dict[str, str]:
    """Return this process's variables without those of a deployment."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "LAKEGATE_"))}


@contextmanager
def served(environment: Mapping[str, str], *options: str) -> Iterator[Served]:
    """Serve a page in a process of its own."""
    port = free_port(set())
    command = [sys.executable, "-c", _COMMAND, "page", "--port", str(port), *options]
    with serving(command, environment, port) as found:
        yield found


@contextmanager
def serving(command: Sequence[str], environment: Mapping[str, str], port: int) -> Iterator[Served]:
    """Run a command that serves a page at a port."""
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            printed = server.stdout.readline() if server.stdout else ""
            entrance = re.search(r"http://\S+", printed)
            assert entrance, f"the page is not served: {printed}"
            eventually(lambda: listening(port) or server.poll() is not None)
            assert server.poll() is None, "the page is not served"
            yield Served(port, entrance[0])
        finally:
            server.terminate()
