"""S3: its answers as values, and its refusals as errors of ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lakegate.errors import LakegateError, Permanent, Transient

_OVERWRITTEN = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")


class Overwritten(Transient):
    """Somebody else put another text there in between."""


class Missing(LakegateError):
    """There is no such object."""


def body_of(found: dict[str, Any], key: str, most: int) -> bytes:
    """The bytes of an object that was got, at most so many. Raises Permanent TOO_LARGE."""
    if found["ContentLength"] > most:
        raise Permanent("TOO_LARGE", f"{key} has more than the {most:,} bytes that are read")
    return bytes(found["Body"].read())


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise what S3 raises of `what` as Missing, Overwritten, or Transient STORAGE_UNAVAILABLE."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] in ("NoSuchKey", "NoSuchVersion", "404"):
            raise Missing("MISSING_OBJECT", f"there is no object {what}") from error
        if error.response["Error"]["Code"] in _OVERWRITTEN:
            raise Overwritten("OVERWRITTEN", f"{what} is another by now") from error
        raise Transient("STORAGE_UNAVAILABLE", f"S3 refused ({what}): {error}") from error
    except BotoCoreError as error:
        raise Transient("STORAGE_UNAVAILABLE", f"S3 did not answer ({what}): {error}") from error
