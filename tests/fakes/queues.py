"""A dead-letter queue in memory."""

from collections.abc import Iterator

from functions.adapters.sqs import DeadLetter


class FakeDeadLetters:
    """A letter stays until it is forgotten; one reading gives each of them once."""

    def __init__(self, name: str) -> None:
        self._letters: dict[str, DeadLetter] = {}
        self._sent = 0
        self.name = name

    def read(self) -> Iterator[DeadLetter]:
        """See DeadLetters.read."""
        yield from list(self._letters.values())

    def forget(self, letter: DeadLetter) -> None:
        """See DeadLetters.forget."""
        self._letters.pop(letter.receipt, None)

    def send(self, body: str) -> None:
        """What SQS does with a message that was received too often."""
        self._sent += 1
        receipt = f"{self.name}-{self._sent}"
        self._letters[receipt] = DeadLetter(body, receipt)

    def waiting(self) -> list[str]:
        """The bodies of the letters that are there."""
        return [letter.body for letter in self._letters.values()]
