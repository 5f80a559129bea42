"""A request to a function URL, and whether it is Slack's.

Shapes: AWS Lambda, "Invoking Lambda function URLs" (payload format 2.0). Rules: Slack, "Verifying
requests from Slack": the signature is over the raw body, and a request older than 5 minutes may be
one that somebody overheard.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from slack_sdk.signature import Clock, SignatureVerifier

from lakegate.errors import Permanent

_LARGEST = 1_000_000  # characters; a message of 50 blocks comes to a tenth of it
_MOST_FIELDS = 10


class Refused(Permanent):
    """A request that is not answered; `status` is HTTP's."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(code, message)
        self.status = status


@dataclass(frozen=True)
class Request:
    """What was sent, as it was signed, and by whom it says that it was."""

    body: str
    timestamp: str
    signature: str

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> "Request":
        """The request in an event of a function URL. Raises Refused; nothing is verified yet."""
        if event["requestContext"]["http"]["method"] != "POST":
            raise Refused(405, "NOT_POSTED", "Slack posts")
        body = event.get("body") or ""
        if len(body) > _LARGEST:
            raise Refused(413, "TOO_LARGE", f"{len(body):,} characters are too many")
        try:
            if event.get("isBase64Encoded"):
                body = base64.b64decode(body, validate=True).decode()
        except ValueError as error:
            raise Refused(400, "NO_TEXT", "the body is no text") from error
        headers = event["headers"]  # whose names come in lower case
        stamp = headers.get("x-slack-request-timestamp", "")
        return cls(body, stamp, headers.get("x-slack-signature", ""))

    def is_signed(self, signing_secret: str, now: Callable[[], float]) -> bool:
        """Whether Slack signed it with that secret, at most five minutes from `now`."""
        try:
            verifier = SignatureVerifier(signing_secret, _At(now))
            return verifier.is_valid(self.body, self.timestamp, self.signature)
        except (ValueError, TypeError):  # no secret, no number, no ASCII
            return False

    @property
    def payload(self) -> Any:
        """The document in it. Raises Refused."""
        try:
            (document,) = parse_qs(self.body, max_num_fields=_MOST_FIELDS)["payload"]
            return json.loads(document)
        except (KeyError, ValueError, RecursionError) as error:
            raise Refused(400, "NO_PAYLOAD", "there is no document in it") from error


class _At(Clock):
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    def now(self) -> float:
        return self._now()
