"""Short names for what messages are about, and for what else is longer than a name."""

import hashlib

_LENGTH = 32  # characters, as an ingestion's id has


def digest(text: str) -> str:
    """Text of any length as a short name."""
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def member(subject: str) -> str:
    """A subject as its thread names it: an ingestion by its id, what is longer by a digest.

    An item of DynamoDB's has 400 KB at most.
    """
    return subject if len(subject) <= _LENGTH else digest(subject)
