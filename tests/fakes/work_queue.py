"""The queues of a shared run in memory, with the visibility and the receive counts of SQS."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Protocol

from lakegate.job.jobspec import JobSpec
from lakegate.job.shared_run import MOST_FILES, Judged, Turn
from spark_jobs.shared.work_queue import HIDDEN_SECONDS, Waiting


class Seconds(Protocol):
    """A clock in seconds, which a fake queue moves when it waits."""

    @property
    def at(self) -> float:
        """Return the time."""

    def pass_(self, seconds: float) -> None:
        """Advance the clock."""


class FakeSeconds:
    """A clock in seconds that moves only when somebody waits."""

    def __init__(self) -> None:
        self.at = 0.0
        self.waits: list[float] = []

    def now(self) -> float:
        """Return the time."""
        return self.at

    def pass_(self, seconds: float) -> None:
        """Advance the clock."""
        self.at += seconds

    def wait(self, seconds: float) -> None:
        """Wait."""
        self.waits.append(seconds)
        self.pass_(seconds)


@dataclass
class _Message:
    id: str
    body: str
    visible_at: float
    taken: int = 0
    receipt: str = ""
    in_hand: bool = False  # until the run puts it back


class FakeQueues:
    """A message is delivered at least once: it comes again unless it is deleted in time.

    Only the receipt of the latest taking counts. `polls` are the times that takings waited at most.
    `taken_away` are the bodies of messages that came again although a run had them in hand.
    """

    def __init__(self, clock: Seconds, tell: Callable[[Judged], object] | None = None) -> None:
        """Use this clock; `tell` takes what the verdict queue gets."""
        self._clock = clock
        self._lock = Lock()
        self._messages: dict[str, _Message] = {}
        self._numbers = count()
        self._tell = tell
        self.polls: list[float] = []
        self.hidden: list[tuple[str, int]] = []
        self.judged: list[Judged] = []
        self.taken_away: set[str] = set()

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
                self._clock.pass_(min(self._next() - self._clock.at, seconds, 20))
            return [self._taken(message) for message in self._visible()[:MOST_FILES]]

    def hide(self, messages: Sequence[Waiting], seconds: int) -> None:
        """Set when messages come again."""
        with self._lock:
            for message in messages:
                if found := self._current(message):
                    found.visible_at = self._clock.at + seconds
                    found.in_hand = seconds >= HIDDEN_SECONDS
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
        if self._tell:
            self._tell(judged)

    def show(self) -> None:
        """End the time for which messages are hidden."""
        for message in self._messages.values():
            message.visible_at = self._clock.at

    def lose(self, most: int | None = None) -> None:
        """Lose all messages, or so many of those that wait, the oldest first."""
        for message in list(self._messages.values()) if most is None else self._visible()[:most]:
            del self._messages[message.id]

    def _visible(self) -> list[_Message]:
        return [each for each in self._messages.values() if each.visible_at <= self._clock.at]

    def _next(self) -> float:
        return min((each.visible_at for each in self._messages.values()), default=float("inf"))

    def _taken(self, message: _Message) -> Waiting:
        if message.in_hand:
            self.taken_away.add(message.body)
        message.taken += 1
        message.in_hand = True
        message.receipt = f"{message.id}-{message.taken}"
        message.visible_at = self._clock.at + HIDDEN_SECONDS
        return Waiting(message.id, message.body, message.receipt, message.taken)

    def _current(self, message: Waiting) -> _Message | None:
        found = self._messages.get(message.id)
        return found if found and found.receipt == message.receipt else None


def specs_in(body: str) -> tuple[JobSpec, ...]:
    """Return the job specs in a message of the work queue."""
    turn = Turn.from_argument(body)
    return turn.specs if turn else (JobSpec.from_argument(body),)


class FakeWorkQueue:
    """The other end of a shared run's work queue, into which functions put job specs.

    `sent_twice` says if any attempt was queued twice.
    """

    def __init__(self, queues: FakeQueues) -> None:
        self._queues = queues
        self._known: set[str] = set()
        self.sent_twice = False

    def send(self, message: JobSpec | Turn) -> None:
        for spec in specs_in(message.to_argument()):
            self.sent_twice |= spec.report_key in self._known
            self._known.add(spec.report_key)
        self._queues.put(message.to_argument())

    def size(self) -> int:
        return self._queues.waiting

    def lose(self, most: int | None = None) -> None:
        """Lose all messages, or so many of those that wait, the oldest first."""
        self._queues.lose(most)
