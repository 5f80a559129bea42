"""The queues of a shared run in memory, with the visibility and the receive counts of SQS."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from threading import Lock

from lakegate.shared_run import MOST_FILES, Judged
from spark_jobs.work_queue import HIDDEN_SECONDS, Waiting


class FakeSeconds:
    """A clock in seconds that moves only when somebody waits."""

    def __init__(self) -> None:
        self.at = 0.0
        self.waits: list[float] = []

    def now(self) -> float:
        """Return the time."""
        return self.at

    def wait(self, seconds: float) -> None:
        """Wait."""
        self.waits.append(seconds)
        self.at += seconds


@dataclass
class _Message:
    id: str
    body: str
    visible_at: float
    taken: int = 0
    receipt: str = ""


class FakeQueues:
    """A message is delivered at least once: it comes again unless it is deleted in time.

    Only the receipt of the latest taking counts. `polls` are the times that takings waited at most.
    """

    def __init__(self, clock: FakeSeconds) -> None:
        self._clock = clock
        self._lock = Lock()
        self._messages: dict[str, _Message] = {}
        self._numbers = count()
        self.polls: list[float] = []
        self.hidden: list[tuple[str, int]] = []
        self.judged: list[Judged] = []

    def put(self, body: str, *, after: float = 0) -> str:
        """Add a message that can be taken after so many seconds; return its id."""
        id_ = f"m{next(self._numbers)}"
        self._messages[id_] = _Message(id_, body, self._clock.at + after)
        return id_

    @property
    def waiting(self) -> int:
        """Return the number of messages that are not deleted."""
        return len(self._messages)

    def take(self, seconds: float) -> list[Waiting]:
        """Take what is visible, or what first becomes so within the time."""
        self.polls.append(seconds)
        with self._lock:
            if not self._visible():
                self._clock.at = min(self._next(), self._clock.at + min(seconds, 20))
            return [self._taken(message) for message in self._visible()[:MOST_FILES]]

    def hide(self, messages: Sequence[Waiting], seconds: int) -> None:
        """Set when messages come again."""
        with self._lock:
            for message in messages:
                if found := self._current(message):
                    found.visible_at = self._clock.at + seconds
                    self.hidden.append((found.id, seconds))

    def delete(self, messages: Sequence[Waiting]) -> None:
        """Delete messages."""
        with self._lock:
            for message in messages:
                if self._current(message):
                    del self._messages[message.id]

    def send(self, judged: Judged) -> None:
        """Send a message to the verdict queue."""
        self.judged.append(judged)

    def _visible(self) -> list[_Message]:
        return [each for each in self._messages.values() if each.visible_at <= self._clock.at]

    def _next(self) -> float:
        return min((each.visible_at for each in self._messages.values()), default=float("inf"))

    def _taken(self, message: _Message) -> Waiting:
        message.taken += 1
        message.receipt = f"{message.id}-{message.taken}"
        message.visible_at = self._clock.at + HIDDEN_SECONDS
        return Waiting(message.id, message.body, message.receipt, message.taken)

    def _current(self, message: Waiting) -> _Message | None:
        found = self._messages.get(message.id)
        return found if found and found.receipt == message.receipt else None
