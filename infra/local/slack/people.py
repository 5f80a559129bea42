"""Users of the local Slack, who press buttons and submit forms; Slack sends them to the app.

Requests and time-outs follow "Interaction payloads", "Handling user interaction" and "Verifying
requests from Slack" in Slack's documentation: an app has 3 seconds to answer, and a trigger can
open one form within 3 seconds.

`install` sets the app's address.
`POST /_press` presses a button as a user: {"ts": …, "button": "Replay", "as": "ada"}.
`POST /_submit` submits a form: {"view": …, "values": {"reason": …}, "as": "ada"}.
Both answer with `ok`, and if the app succeeded with its `response`; `GET /_person?as=ada` shows
what only this user sees: open `forms`, and `private` messages.
"""

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import requests
from flask import Flask, request
from slack_sdk.signature import SignatureVerifier

from infra.local.slack.blocks import problems_of_modal
from infra.local.slack.faults import SlackError

# The app in the local Slack and its users' ids.
TEAM = "T0LAKEGATE"
TOKEN = "xoxb-lakegate-local"  # noqa: S105  only this Slack knows it, and no other token
_FILE = "app.json"


@dataclass(frozen=True)
class App:
    """The app's address for interactions, and Slack's secret to sign them."""

    request_url: str
    signing_secret: str = field(repr=False)


def install(home: Path, app: App) -> None:
    """Install the app in the Slack with this home."""
    home.mkdir(parents=True, exist_ok=True)
    (home / _FILE).write_text(json.dumps(asdict(app)))


def installed(home: Path) -> App | None:
    """Return the app, None if none is installed."""
    file = home / _FILE
    return App(**json.loads(file.read_text())) if file.exists() else None


def user_id(name: str) -> str:
    """Return the id of the user with this name."""
    return "U0" + "".join(
        letter for letter in name.upper() if letter.isascii() and letter.isalnum()
    )


Answer = dict[str, Any]
_PATIENCE = 3.0  # seconds
_MOST_RESPONSES = 5


class Users:
    """The workspace's users and the one app that they use."""

    def __init__(self, home: Path, message: Callable[[str], dict[str, Any]]) -> None:
        """Use `message` to find the message of a time; it raises SlackError if there is none."""
        self._home = home
        self._message = message
        self.sends_again = 0
        self.patience = _PATIENCE
        self._triggers: dict[str, tuple[str, float]] = {}
        self._forms: dict[str, dict[str, Any]] = {}
        self._responses: dict[str, list[str]] = {}
        self._private: list[tuple[str, str]] = []

    def press(self, ts: str, button: str, person: str, here: str) -> Answer:
        """Press a button of a message; `here` is this Slack's address. Raises SlackError."""
        message = self._message(ts)
        response = secrets.token_hex(8)
        self._responses[response] = [person] * _MOST_RESPONSES
        payload = {
            "type": "block_actions",
            "container": {"type": "message", "message_ts": ts, "is_ephemeral": False},
            "channel": {"id": message["channel"], "name": message["channel"].lstrip("#")},
            "message": {"type": "message", **message},
            "state": {"values": {}},
            "response_url": f"{here}/responses/{response}",
            "actions": [_pressed(message, button)],
        }
        return self._send(payload, person)

    def submit(self, view: str, values: dict[str, str], person: str) -> Answer:
        """Submit an open form; it stays open if the app refuses the input. Raises SlackError."""
        form = self._forms.get(view)
        if not form or form["person"] != person:
            raise SlackError("not_found")
        state = {
            name: {name: {"type": "plain_text_input", "value": value}}
            for name, value in values.items()
        }
        shown = {"id": view, "team_id": TEAM, **form["view"], "state": {"values": state}}
        answer = self._send({"type": "view_submission", "view": shown}, person)
        if answer["ok"] and not answer["response"]:
            self._forms.pop(view, None)  # it may be submitted twice
        return answer

    def open(self, arguments: Answer) -> Answer:
        """Open a form, as views.open does. Raises SlackError."""
        given = arguments.get("view")
        view: Any = json.loads(given) if isinstance(given, str) else given
        person, until = self._triggers.pop(str(arguments.get("trigger_id")), ("", 0.0))
        if not person:
            raise SlackError("invalid_trigger_id")
        if time.monotonic() > until:
            raise SlackError("expired_trigger_id")
        if problems := problems_of_modal(view):
            raise SlackError("invalid_arguments", response_metadata={"messages": problems})
        id_ = f"V{secrets.token_hex(5).upper()}"
        self._forms[id_] = {"person": person, "view": view}
        return {"view": {"id": id_, **view}}

    def respond(self, response: str, document: Answer) -> tuple[str, int]:
        """Take an app's message at a response address: to one user, five times at most."""
        left = self._responses.get(response)
        if not left:
            return "used_url", 404
        if document.get("response_type") != "ephemeral" or document.get("replace_original"):
            return "invalid_payload", 400  # Slack takes it, but no button here needs it
        self._private.append((left.pop(), document["text"]))
        return "ok", 200

    def visible_to(self, person: str) -> Answer:
        """Return what only this user sees."""
        forms = [
            {"id": id_, "view": form["view"]}
            for id_, form in self._forms.items()
            if form["person"] == person
        ]
        return {"forms": forms, "private": [text for user, text in self._private if user == person]}

    def _send(self, payload: Answer, person: str) -> Answer:
        """Send to the app, repeatedly if `sends_again` is set; return the first answer."""
        trigger = secrets.token_hex(8)
        self._triggers[trigger] = (person, time.monotonic() + self.patience)
        user = {"id": user_id(person), "username": person, "name": person, "team_id": TEAM}
        team = {"id": TEAM, "domain": "lakegate"}
        body = urlencode(
            {"payload": json.dumps({**payload, "user": user, "team": team, "trigger_id": trigger})}
        )
        answers = [self._post(body, retry) for retry in range(1 + self.sends_again)]
        return answers[0]

    def _post(self, body: str, retry: int) -> Answer:
        app = installed(self._home)
        if not app:
            raise SlackError("app_has_no_request_url")
        stamp = str(int(time.time()))
        signed = SignatureVerifier(app.signing_secret).generate_signature(
            timestamp=stamp, body=body
        )
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "X-Slack-Request-Timestamp": stamp,
            "X-Slack-Signature": str(signed),
        }
        if retry:
            headers |= {"X-Slack-Retry-Num": str(retry), "X-Slack-Retry-Reason": "http_timeout"}
        try:
            answer = requests.post(app.request_url, body, headers=headers, timeout=self.patience)
        except requests.RequestException as error:
            return {"ok": False, "error": f"the app did not answer: {type(error).__name__}"}
        if answer.status_code != 200:
            return {"ok": False, "error": f"the app answered {answer.status_code} {answer.text}"}
        return {"ok": True, "response": answer.json() if answer.text else {}}


def add_routes(app: Flask, users: Users) -> None:
    """Add the routes by which users press and submit."""
    app.add_url_rule("/_press", "press", partial(_answered, _press, users), methods=["POST"])
    app.add_url_rule("/_submit", "submit", partial(_answered, _submit, users), methods=["POST"])
    app.add_url_rule("/_person", "person", lambda: users.visible_to(request.args["as"]))
    app.add_url_rule(
        "/responses/<response>",
        "responses",
        lambda response: users.respond(response, request.get_json()),
        methods=["POST"],
    )


def _press(users: Users, body: Answer) -> Answer:
    return users.press(body["ts"], body["button"], body["as"], request.host_url.rstrip("/"))


def _submit(users: Users, body: Answer) -> Answer:
    return users.submit(body["view"], body["values"], body["as"])


def _answered(do: Callable[[Users, Answer], Answer], users: Users) -> Answer:
    try:
        return do(users, request.get_json())
    except SlackError as error:
        return error.answer


def _pressed(message: Answer, label: str) -> Answer:
    """Return the button as Slack sends it. Raises SlackError if there is none with this label."""
    for block in message["blocks"]:
        for element in block.get("elements", []) if block["type"] == "actions" else []:
            if element["type"] == "button" and element["text"]["text"] == label:
                sent = {n: v for n, v in element.items() if n != "confirm"}
                return {**sent, "block_id": block.get("block_id", ""), "action_ts": _now()}
    raise SlackError("no_such_button")


def _now() -> str:
    return f"{time.time():.6f}"
