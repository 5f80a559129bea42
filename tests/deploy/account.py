"""One AWS account on this machine for all suites that deploy: each has stages of its own."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from infra.local import ministack, parts, processes
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
_PART = "ministack"


@dataclass(frozen=True)
class Account:
    """A ministack that holds every caller to its role's policies; its state is kept in `home`."""

    home: Path

    @property
    def endpoint(self) -> str:
        """The address of all its services; after a start it may be another."""
        return f"http://127.0.0.1:{parts.known_ports(self.home)[_PART]}"

    def client(self, service: str) -> Any:
        """Return boto3's client of a service, as the account's root."""
        return ministack.client(service, self.endpoint)

    def start(self) -> None:
        """Start it, on another port than before."""
        (self.home / "ports.json").unlink(missing_ok=True)
        port = parts.choose_ports(self.home)[_PART]
        python = ROOT / ".venv-ministack" / "bin" / "python"
        ministack.prepare(self.home, self.endpoint, datetime.now(UTC))
        processes.start(self.home, ministack.command(self.home, python, port))
        processes.wait_until(self.home, _PART, self._answers, PATIENCE)

    def stop(self) -> None:
        """Stop it in order."""
        processes.stop(self.home, _PART)

    def kill(self) -> None:
        """End it as a power cut does."""
        found = processes.running(self.home, _PART)
        assert found
        os.kill(found.pid, signal.SIGKILL)

    def _answers(self) -> bool:
        return ministack.answers(self.endpoint)


@contextmanager
def running(home: Path) -> Iterator[Account]:
    """An empty account."""
    account = Account(home)
    try:
        account.start()
        yield account
    finally:
        account.stop()
