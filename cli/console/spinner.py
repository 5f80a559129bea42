"""A spinner on a terminal, while a command has printed nothing for half a second."""

from collections.abc import Callable
from threading import Lock, Timer

from rich.console import Console
from rich.status import Status

_AFTER = 0.5  # seconds
_WORDS = "working; Ctrl-C stops"


class Spinner:
    """A spinner that starts late and stops before anything else is printed."""

    def __init__(self, console: Callable[[], Console], after: float = _AFTER) -> None:
        """Draw on the console after so many seconds; nothing unless it is a terminal."""
        self._console = console
        self._after = after
        self._lock = Lock()
        self._timer: Timer | None = None
        self._status: Status | None = None

    def start(self) -> None:
        """Begin to wait."""
        with self._lock:
            self._timer = Timer(self._after, self._show)
            self._timer.daemon = True
            self._timer.start()

    def stop(self) -> None:
        """Remove the spinner, or draw none; more calls change nothing."""
        with self._lock:
            if self._timer:
                self._timer.cancel()
                self._timer = None
            if self._status:
                self._status.stop()
                self._status = None

    def _show(self) -> None:
        console = self._console()
        with self._lock:
            if self._timer and console.is_terminal:  # else it was stopped meanwhile
                self._status = console.status(_WORDS)
                self._status.start()


SPINNER = Spinner(lambda: Console(stderr=True))
