"""Slack for the function behind the buttons: signed requests, and the replies that it shows."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from functions.model.messages.action import ActionRequest
from lakegate.errors import LakegateError

SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
NOW = 1_772_366_412.0
_EVENTS = Path(__file__).parents[1] / "events"


def example(name: str) -> Any:
    """Return one of the documents in tests/events."""
    return json.loads((_EVENTS / f"{name}.json").read_text())


def posted(
    payload: Any, secret: str = SIGNING_SECRET, at: float = NOW, *, plain: bool = False
) -> dict[str, Any]:
    """Return a function URL's event of a payload signed by Slack, as text if `plain`."""
    return event(urlencode({"payload": json.dumps(payload)}), secret, at, plain=plain)


def event(
    body: str, secret: str = SIGNING_SECRET, at: float = NOW, *, plain: bool = False
) -> dict[str, Any]:
    """Return a function URL's event of any body."""
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
    """The replies that Slack showed to one user."""

    def __init__(self) -> None:
        self.forms: list[tuple[str, Mapping[str, Any]]] = []
        self.sent: list[tuple[str, str]] = []
        self.failure: LakegateError | None = None

    def open(self, trigger: str, view: Mapping[str, Any]) -> None:
        if self.failure:
            raise self.failure
        self.forms.append((trigger, view))

    def reply(self, address: str, words: str) -> None:
        """Record a reply."""
        if self.failure:
            raise self.failure
        self.sent.append((address, words))


class FakeActions:
    """The queue of actions; a repeated request is kept once."""

    def __init__(self) -> None:
        self.sent: list[ActionRequest] = []
        self.failure: LakegateError | None = None

    def send(self, wish: ActionRequest) -> None:
        if self.failure:
            raise self.failure
        if wish.same not in {each.same for each in self.sent}:
            self.sent.append(wish)
