"""Verify that a request to a function URL comes from Slack.

Formats: AWS Lambda, "Invoking Lambda function URLs" (payload format 2.0). Rules: Slack, "Verifying
requests from Slack": the signature covers the raw body, and a request older than 5 minutes may be a
replayed one.
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
    """A refused request; `status` is HTTP's."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(code, message)
        self.status = status


@dataclass(frozen=True)
class Request:
    """A request as it was signed, with the signature that it claims."""

    body: str
    timestamp: str
    signature: str

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> "Request":
        """Return the request in an event of a function URL, unverified. Raises Refused."""
        if event["requestContext"]["http"]["method"] != "POST":
            raise Refused(405, "NOT_POSTED", "Slack sends POST requests only")
        body = event.get("body") or ""
        if len(body) > _LARGEST:
            raise Refused(413, "TOO_LARGE", f"the request has {len(body):,} characters, too many")
        try:
            if event.get("isBase64Encoded"):
                body = base64.b64decode(body, validate=True).decode()
        except ValueError as error:
            raise Refused(400, "NO_TEXT", "the request's body is not text") from error
        headers = event["headers"]  # whose names come in lower case
        stamp = headers.get("x-slack-request-timestamp", "")
        return cls(body, stamp, headers.get("x-slack-signature", ""))

    def is_signed(self, signing_secret: str, now: Callable[[], float]) -> bool:
        """Return whether Slack signed it with that secret at most five minutes before `now`."""
        try:
            verifier = SignatureVerifier(signing_secret, _At(now))
            return verifier.is_valid(self.body, self.timestamp, self.signature)
        except (ValueError, TypeError):  # no secret, no number, no ASCII
            return False

    @property
    def payload(self) -> Any:
        """Return the JSON document in it. Raises Refused."""
        try:
            (document,) = parse_qs(self.body, max_num_fields=_MOST_FIELDS)["payload"]
            return json.loads(document)
        except (KeyError, ValueError, RecursionError) as error:
            raise Refused(400, "NO_PAYLOAD", "the request has no JSON payload") from error


class _At(Clock):
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    def now(self) -> float:
        return self._now()
