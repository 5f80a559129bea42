"""One local AWS account for all suites that deploy: each has its own stages."""

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
    """A ministack that enforces each caller's role policies; its state is kept in `home`."""

    home: Path

    @property
    def endpoint(self) -> str:
        """Return the address of all its services; it may change at a start."""
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
    """Yield an empty account."""
    account = Account(home)
    try:
        account.start()
        yield account
    finally:
        account.stop()
