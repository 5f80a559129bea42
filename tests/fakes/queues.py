"""Queues in memory: dead letters, and files that wait for a shared run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from functions.adapters.sqs import DeadLetter
from lakegate.jobspec import JobSpec


class FakeBacklog:
    """A queue of which only the size is asked."""

    def __init__(self, size: Callable[[], int]) -> None:
        self.size = size


class FakeDeadLetters:
    """A message stays until it is deleted; one `read` yields each of them once."""

    def __init__(self, name: str) -> None:
        self._messages: dict[str, DeadLetter] = {}
        self._sent = 0
        self.name = name

    def read(self) -> Iterator[DeadLetter]:
        """Yield the waiting messages."""
        yield from list(self._messages.values())

    def delete(self, message: DeadLetter) -> None:
        """Delete a handled message."""
        self._messages.pop(message.receipt, None)

    def send(self, body: str) -> None:
        """Add a message that was received too often."""
        self._sent += 1
        receipt = f"{self.name}-{self._sent}"
        self._messages[receipt] = DeadLetter(body, receipt)

    def waiting(self) -> list[str]:
        """Return the bodies of the waiting messages."""
        return [message.body for message in self._messages.values()]


@dataclass(frozen=True)
class Work:
    """A waiting job spec, and how often a run has received it."""

    spec: JobSpec
    receipt: int
    received: int = 0


class FakeWorkQueue:
    """A message that a run has in hand stays until the run deletes it, or dies.

    `was_doubled` says if any attempt was queued, or received, twice.
    """

    def __init__(self) -> None:
        self._waiting: list[Work] = []
        self._in_hand: dict[int, Work] = {}
        self._sent = 0
        self._known: set[str] = set()
        self.was_doubled = False

    def send(self, spec: JobSpec) -> None:
        """See WorkQueue.send."""
        self._sent += 1
        self.was_doubled |= spec.report_key in self._known
        self._known.add(spec.report_key)
        self._waiting.append(Work(spec, self._sent))

    def size(self) -> int:
        """See WorkQueue.size."""
        return len(self._waiting) + len(self._in_hand)

    def take(self, most: int = 100) -> list[Work]:
        """Receive messages."""
        taken = [replace(work, received=work.received + 1) for work in self._waiting[:most]]
        del self._waiting[:most]
        self._in_hand |= {work.receipt: work for work in taken}
        return taken

    def delete(self, done: Sequence[Work]) -> None:
        """Delete messages that a run has handled."""
        for work in done:
            self._in_hand.pop(work.receipt, None)

    def give_back(self) -> set[str]:
        """End the visibility timeout of all that runs have in hand; return its reports' keys."""
        given = list(self._in_hand.values())
        self.was_doubled |= bool(given)
        self._waiting += given
        self._in_hand.clear()
        return {work.spec.report_key for work in given}

    def lose(self, most: int | None = None) -> None:
        """Lose all messages, or so many of those that wait, the oldest first."""
        del self._waiting[:most]
        if most is None:
            self._in_hand.clear()
