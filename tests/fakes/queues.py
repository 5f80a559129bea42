"""Queues in memory: dead letters, and one of which only the size is asked."""

from collections.abc import Callable, Iterator

from functions.adapters.sqs import DeadLetter


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
