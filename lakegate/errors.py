"""The two kinds of error: one that goes away by itself, and one that people must hear of."""


class LakegateError(Exception):
    """Something went wrong; `code` is for programs, `message` for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Transient(LakegateError):
    """Trying again later may succeed: let the queue redeliver, tell nobody yet."""


class Permanent(LakegateError):
    """Trying again changes nothing: end the ingestion as errored and tell its people."""
