"""Slack as the function behind the buttons knows it: requests that it signs, and what it shows."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from functions.notifications.interactions import ActionRequest
from lakegate.errors import LakegateError

SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
NOW = 1_772_366_412.0
_EVENTS = Path(__file__).parents[1] / "events"


def example(name: str) -> Any:
    """One of the documents in tests/events."""
    return json.loads((_EVENTS / f"{name}.json").read_text())


def posted(
    payload: Any, secret: str = SIGNING_SECRET, at: float = NOW, *, plain: bool = False
) -> dict[str, Any]:
    """A function URL's event of a payload that Slack signed; `plain` where it comes as text."""
    return event(urlencode({"payload": json.dumps(payload)}), secret, at, plain=plain)


def event(
    body: str, secret: str = SIGNING_SECRET, at: float = NOW, *, plain: bool = False
) -> dict[str, Any]:
    """A function URL's event of any body."""
    stamp = str(int(at))
    signed = hmac.new(secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
    made = example("function_url")
    made["headers"] |= {
        "x-slack-request-timestamp": stamp,
        "x-slack-signature": f"v0={signed}",
    }
    told = body if plain else base64.b64encode(body.encode()).decode()
    return made | {"body": told, "isBase64Encoded": not plain}


class FakeReplies:
    """What Slack showed to one person."""

    def __init__(self) -> None:
        self.forms: list[tuple[str, Mapping[str, Any]]] = []
        self.told: list[tuple[str, str]] = []
        self.failure: LakegateError | None = None

    def open(self, trigger: str, view: Mapping[str, Any]) -> None:
        """See Replies.open."""
        if self.failure:
            raise self.failure
        self.forms.append((trigger, view))

    def reply(self, address: str, words: str) -> None:
        """See Replies.tell."""
        if self.failure:
            raise self.failure
        self.told.append((address, words))


class FakeActions:
    """The queue of actions: what one person wants of what they saw is there once."""

    def __init__(self) -> None:
        self.sent: list[ActionRequest] = []
        self.failure: LakegateError | None = None

    def send(self, wish: ActionRequest) -> None:
        """See ActionQueue.send."""
        if self.failure:
            raise self.failure
        if (wish.what, wish.by, wish.seen) not in {(w.what, w.by, w.seen) for w in self.sent}:
            self.sent.append(wish)
