"""A stand-in of the local stack in a process of its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import requests

from infra.local.ministack import CREDENTIALS
from infra.local.parts import free_port
from tests.waiting import PATIENCE, eventually


class StandIn:
    """A stand-in's process; `health` is a path that it answers once it is ready."""

    def __init__(self, module: str, home: Path, health: str) -> None:
        self.home = home
        self.port = free_port(set())
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = {**os.environ, **CREDENTIALS}
        self._module, self._health = module, health

    def launch(self, *flags: str) -> None:
        """Start it and wait until it answers."""
        command = [sys.executable, "-m", self._module, f"--port={self.port}", f"--home={self.home}"]
        self._process = subprocess.Popen([*command, *flags], env=self.env)
        eventually(self._answers, message="the service does not answer")

    def stop(self, how: int = signal.SIGTERM) -> None:
        """End its process with this signal."""
        self._process.send_signal(how)
        self._process.wait()

    def control(self, **faults: object) -> None:
        """Set these faults."""
        requests.put(f"{self.url}/_control", json=faults, timeout=PATIENCE).raise_for_status()

    def _answers(self) -> bool:
        try:
            return requests.get(f"{self.url}/{self._health}", timeout=5).ok
        except requests.RequestException:
            return False
