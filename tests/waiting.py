"""Waits for external conditions, without sleeping a fixed time."""

import socket
import time
from collections.abc import Callable
from typing import TypeVar

_PAUSE = 0.02
# Seconds. Who waits for what will happen waits no longer than it takes: what two processes leave to
# each other is done by the second sweep after that, which come every five minutes.
PATIENCE = 900.0

Value = TypeVar("Value")


def eventually(
    probe: Callable[[], Value | None],
    timeout: float = PATIENCE,
    message: str = "",
    pause: float = _PAUSE,
) -> Value:
    """Return the first true value of `probe` within `timeout` seconds, `pause` between two tries.

    A longer pause leaves the machine to the awaited work. Raise AssertionError with the message and
    the last value if no true value comes.
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
    """Return whether a local port has a listener."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
