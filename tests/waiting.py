"""Waiting for what happens elsewhere, without sleeping a fixed time."""

import socket
import time
from collections.abc import Callable
from typing import TypeVar

_PAUSE = 0.02
PATIENCE = 600.0  # seconds: who waits for what will happen waits no longer than it takes

Value = TypeVar("Value")


def eventually(
    probe: Callable[[], Value | None],
    timeout: float = PATIENCE,
    message: str = "",
    pause: float = _PAUSE,
) -> Value:
    """The first true value that `probe` gives within `timeout` seconds, `pause` between two.

    A longer pause leaves the machine to what is waited for. Raises AssertionError with the message
    and the last value where none comes.
    """
    deadline = time.monotonic() + timeout
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > deadline:
            said = message or "what was waited for did not happen"
            raise AssertionError(f"{said} within {timeout} s; the last value was {value!r}")
        time.sleep(pause)


def listening(port: int) -> bool:
    """Whether somebody listens at a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
