"""A landed file in memory."""

import io


class InMemory:
    """A file's bytes, read as those of a landed version."""

    def __init__(self, body: bytes) -> None:
        self.body, self.size = body, len(body)

    def range(self, start: int, length: int) -> bytes:
        """Return the bytes from `start`."""
        return self.body[start : start + length]

    def open(self) -> io.BytesIO:
        """Open a stream of all bytes."""
        return io.BytesIO(self.body)
