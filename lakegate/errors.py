"""The two kinds of error: transient errors are retried, permanent ones are reported."""

import copyreg
from typing import Any


class LakegateError(Exception):
    """An error; `code` is for programs, `message` for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        """Let one of Spark's tasks return it, whatever a subclass is made of."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class Transient(LakegateError):
    """An error that a retry may resolve: the queue redelivers the message, without alert."""


class Permanent(LakegateError):
    """An error that no retry resolves: the ingestion ends errored, with an alert."""
