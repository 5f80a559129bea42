"""A stand-in for Slack, with its Web API for messages, which also shows them.

    python -m infra.local.slack --port 4568 --home DIR

`chat.postMessage` and `chat.update` are under `/api/`, for any slack_sdk client with that base URL.
They check what Slack checks and answer with its errors; see "chat.postMessage" and the Block Kit
reference in Slack's documentation.

`GET /messages` gives every message as it is now, oldest first: `channel` as the sender named it,
`ts`, `text`, `blocks`, `received_at`; of a reply the `thread_ts`, and whether it was `broadcast`;
`edited` says that it was changed. They are kept in `messages.jsonl` under the home directory.
`DELETE /messages/<ts>` deletes one, as a user does.
`PUT /_control` sets faults; each PUT replaces the one before:

    {"fail_next": 2,            the next 2 calls are answered with HTTP 503
     "away_seconds": 30,        so is every call in the next 30 seconds
     "ratelimit_next": 1,       the next call is answered with HTTP 429 and Retry-After,
     "retry_after": 30,         which is so many seconds, else 1
     "sends_again": 2,          each pressed button is sent twice more, as if it had timed out
     "missing_channels": ["#x"],    such a channel does not exist
     "archived_channels": ["#y"]}   such a channel takes no messages

`views.open` serves the users of slack_people.py, who press buttons.
"""

import argparse
import hashlib
import json
import logging
import re
import threading
import time
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from flask import Flask, jsonify, request
from werkzeug.serving import make_server

from infra.local.slack.blocks import problems
from infra.local.slack.faults import Faults, SlackError
from infra.local.slack.people import TOKEN, Users, add_routes

Message = dict[str, Any]
Answer = dict[str, Any]

_CHANNEL_ID = re.compile(r"[CDG][A-Z0-9]{8,}")
_CHANNEL = re.compile(rf"{_CHANNEL_ID.pattern}|#?[^\sA-Z.,!?#@]{{1,80}}")
_USER = "U0LAKEGATE"
_LONGEST_TEXT = 40_000


class Messages:
    """All messages, in a file with one line for each message and each change."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._by_ts: dict[str, Message] = {}
        if file.exists():
            changes = map(json.loads, file.read_text("utf-8").splitlines())
            self._by_ts = {message["ts"]: message for message in changes}

    def put(self, message: Message) -> None:
        """Store a message or its newer form."""
        with self._file.open("ab", buffering=0) as file:
            file.write(json.dumps(message).encode() + b"\n")
        self._by_ts[message["ts"]] = message

    def get(self, ts: str) -> Message:
        """Return the message of that time. Raises SlackError."""
        message = self._by_ts.get(ts)
        if not message or message.get("deleted"):
            raise SlackError("message_not_found")
        return message

    def channel(self, id_: str) -> str:
        """Return the known name of a channel's id, or the id."""
        named = {_id(message["channel"]): message["channel"] for message in self._by_ts.values()}
        return named.get(id_, id_)

    def all(self) -> list[Message]:
        """Return all messages, oldest first."""
        return [message for message in self._by_ts.values() if not message.get("deleted")]


class Slack:
    """The Web API's methods: each takes the arguments of a call and returns its answer."""

    def __init__(self, home: Path) -> None:
        """Keep the messages under `home`, where the app is installed."""
        self.messages = Messages(home / "messages.jsonl")
        self.users = Users(home, self.messages.get)
        self.faults = Faults()
        self._last = 0.0
        self._lock = threading.Lock()

    def call(self, method: str, token: str, arguments: dict[str, Any]) -> Answer:
        """Answer a call. Raises SlackError."""
        methods = {
            "chat.postMessage": self._post_message,
            "chat.update": self._update,
            "views.open": self.users.open,
        }
        with self._lock:
            self.faults.check_call()
            if method not in methods:
                raise SlackError("unknown_method", req_method=method)
            if token != TOKEN:
                raise SlackError("invalid_auth" if token else "not_authed")
            return {"ok": True, **methods[method](arguments)}

    def _post_message(self, arguments: dict[str, Any]) -> Answer:
        channel = self.messages.channel(_channel(arguments))
        content = _content(arguments)
        self.faults.check_channel(channel)
        self._last = max(time.time(), self._last + 1e-6)
        message = {"channel": channel, "ts": f"{self._last:.6f}", **content}
        if thread := arguments.get("thread_ts"):
            message |= {"thread_ts": self._thread(thread, channel)}
            message |= {"broadcast": arguments.get("reply_broadcast") in (True, "true", "1")}
        self.messages.put({**message, "received_at": datetime.now(UTC).isoformat()})
        return _shown(message)

    def _update(self, arguments: dict[str, Any]) -> Answer:
        channel = _channel(arguments)
        known = self.messages.get(str(arguments.get("ts")))
        if channel not in (known["channel"], _id(known["channel"])):
            raise SlackError("message_not_found")
        self.faults.check_archived(known["channel"], "is_inactive")
        message = {**known, **_content(arguments), "edited": True}
        self.messages.put(message)
        return _shown(message)

    def _thread(self, ts: Any, channel: str) -> str:
        """Return the time of the thread's first message. Raises SlackError."""
        try:
            first = self.messages.get(str(ts))
        except SlackError as error:
            raise SlackError("thread_not_found") from error
        if _id(first["channel"]) != _id(channel):
            raise SlackError("thread_not_found")
        return str(first.get("thread_ts") or first["ts"])


def _channel(arguments: dict[str, Any]) -> str:
    """Return the channel of a call. Raises SlackError."""
    channel = arguments.get("channel")
    if not isinstance(channel, str) or not _CHANNEL.fullmatch(channel):
        raise SlackError("channel_not_found")
    return channel


def _content(arguments: dict[str, Any]) -> Message:
    """Return the text and the blocks of a call. Raises SlackError."""
    text, blocks = arguments.get("text") or "", arguments.get("blocks") or []
    if isinstance(blocks, str):
        try:
            blocks = json.loads(blocks)
        except ValueError as error:
            raise SlackError("invalid_blocks_format") from error
    if not text and not blocks:
        raise SlackError("no_text")
    if len(text) > _LONGEST_TEXT:
        raise SlackError("msg_too_long")
    if reasons := problems(blocks):
        errors = [f"[ERROR] {problem}" for problem in reasons]
        raise SlackError("invalid_blocks", errors=reasons, response_metadata={"messages": errors})
    return {"text": text, "blocks": blocks}


def _shown(message: Message) -> Answer:
    """Return the answer to the call that made a message, with its channel's id."""
    inner = {name: message[name] for name in ("text", "blocks", "ts")}
    inner |= {"type": "message", "user": _USER, "bot_id": "B0LAKEGATE"}
    return {"channel": _id(message["channel"]), "ts": message["ts"], "message": inner}


def _id(channel: str) -> str:
    """Return a channel's id, which follows from its name here."""
    if _CHANNEL_ID.fullmatch(channel):
        return channel
    return "C" + hashlib.sha256(channel.lstrip("#").encode()).hexdigest()[:10].upper()


def web_app(slack: Slack) -> Flask:
    """Return the service: the Web API, `/messages` and `/_control`."""
    app = Flask("slack")
    app.add_url_rule("/api/<method>", "call", partial(_call, slack), methods=["POST", "GET"])
    app.add_url_rule("/messages", "messages", lambda: jsonify(slack.messages.all()))
    app.add_url_rule("/messages/<ts>", "delete", partial(_delete, slack), methods=["DELETE"])
    app.add_url_rule("/_control", "control", partial(_control, slack), methods=["PUT"])
    add_routes(app, slack.users)
    return app


def _call(slack: Slack, method: str) -> tuple[Answer, int, dict[str, str]]:
    is_json = request.is_json and request.content_length
    arguments = request.get_json(silent=True) if is_json else request.values.to_dict()
    header = request.headers.get("Authorization", "").removeprefix("Bearer ")
    try:
        if not isinstance(arguments, dict):
            raise SlackError("invalid_json")
        return slack.call(method, header or arguments.get("token", ""), arguments), 200, {}
    except SlackError as error:
        return error.answer, error.status, error.headers


def _delete(slack: Slack, ts: str) -> tuple[Answer, int]:
    try:
        slack.messages.put({**slack.messages.get(ts), "deleted": True})
    except SlackError as error:
        return error.answer, 404
    return {"ok": True}, 200


def _control(slack: Slack) -> tuple[dict[str, Any], int]:
    try:
        slack.faults = faults = Faults(**request.get_json())
    except TypeError as error:
        return {"message": str(error)}, 400
    slack.users.sends_again, slack.users.patience = faults.sends_again, faults.app_seconds
    return asdict(faults), 200


def main() -> None:
    """Serve on 127.0.0.1 until stopped."""
    parser = argparse.ArgumentParser(prog="python -m infra.local.slack")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--home", type=Path, required=True, help="where messages are kept")
    options = parser.parse_args()
    options.home.mkdir(parents=True, exist_ok=True)
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    app = web_app(Slack(options.home))
    make_server("127.0.0.1", options.port, app, threaded=True).serve_forever()
