"""A press goes through the local Slack: signed, answered in time, shown to one person only."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import requests
from flask import Flask, request
from slack_sdk import WebClient
from werkzeug.serving import make_server

from functions.adapters.secrets import Secret
from functions.model.messages.action import ActionRequest, Seen, Verb
from functions.notifications.alert_text import alert, state_token
from functions.notifications.interactions import Endpoint, url_handler
from functions.notifications.slack import SlackReplies
from functions.notifications.slack_buttons import buttons, modal
from infra.local.slack.people import TEAM, TOKEN, App, install, installed, user_id
from infra.local.slack.server import Slack, web_app
from lakegate.errors import Permanent, Transient
from tests.fakes import wire
from tests.fakes.examples import INGESTION, REPORT
from tests.fakes.lambda_context import Context
from tests.fakes.slack import SIGNING_SECRET, FakeActions, example

REJECTED = replace(INGESTION, audit=replace(INGESTION.audit, rows=842))
SEEN = Seen(REJECTED.id, state_token(REJECTED))
VIEW = modal(SEEN, "Rejected: a.csv")


@dataclass
class Vault:
    """Secrets Manager with Slack's secret."""

    token: str = TOKEN

    def get_secret_value(self, SecretId: str) -> dict[str, str]:  # noqa: N803  boto3's name
        """See boto3."""
        held = {"token": self.token, "signing_secret": SIGNING_SECRET}
        return {"SecretString": json.dumps(held)}


@dataclass
class Channel:
    """The local Slack with one alert, and the function that its buttons call."""

    url: str
    slack: Slack
    actions: FakeActions
    ts: str

    def press(self, button: str, person: str = "ada") -> dict[str, Any]:
        """Press a button as Slack does."""
        return self._ask("_press", {"ts": self.ts, "button": button, "as": person})

    def submit(self, reason: str, person: str = "ada") -> dict[str, Any]:
        """Submit a reason in the open form as Slack does."""
        (form,) = self.seen_by("ada")["forms"]
        asked = {"view": form["id"], "values": {"reason": reason}, "as": person}
        return self._ask("_submit", asked)

    def seen_by(self, person: str) -> Any:
        """Return the replies that only this person sees."""
        return requests.get(f"{self.url}/_person", {"as": person}, timeout=60).json()

    def _ask(self, what: str, asked: dict[str, Any]) -> dict[str, Any]:
        return dict(requests.post(f"{self.url}/{what}", json=asked, timeout=60).json())


@contextmanager
def served(app: Flask) -> Iterator[str]:
    """Serve an app on a port of its own; yield its address."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.port}"
    server.shutdown()
    server.server_close()


def replies(url: str, token: str = TOKEN, seconds: int = 60) -> SlackReplies:
    """Return the adapter, with a timeout long enough for a busy machine."""
    client = WebClient(timeout=60)
    return SlackReplies(client, Secret(Vault(token), "slack"), f"{url}/api/", seconds)


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[Channel]:
    """Yield an alert with buttons; ada may press them, bob may not."""
    slack, actions = Slack(tmp_path), FakeActions()
    slack.users.patience = 60  # where nothing is about how long Slack waits
    with served(web_app(slack)) as url, served(_function(url, actions)) as function:
        install(tmp_path, App(function, SIGNING_SECRET))
        notice = alert(REJECTED, REPORT)
        posted = WebClient(TOKEN, base_url=f"{url}/api/").chat_postMessage(
            channel="#orders",
            text=notice.text,
            blocks=[dict(block) for block in (*notice.blocks, *buttons(notice))],
        )
        yield Channel(url, slack, actions, str(posted["ts"]))


def _function(slack: str, actions: Any) -> Flask:
    """Return the function behind an address, as Lambda serves it."""
    secret = Secret(Vault(), "slack")
    users = frozenset({user_id("ada")})
    endpoint = Endpoint(users, TEAM, secret, actions, replies(slack), time.time)
    handler: Any = url_handler(lambda: endpoint)
    app = Flask("function")

    def serve() -> tuple[str, int]:
        event = example("function_url")
        event |= {"body": request.get_data(as_text=True), "isBase64Encoded": False}
        event["headers"] |= {name.lower(): value for name, value in request.headers.items()}
        answered = handler(event, Context())
        return answered["body"], answered["statusCode"]

    app.add_url_rule("/", "serve", serve, methods=["POST"])
    return app


def test_a_press_is_notified(channel: Channel) -> None:
    """A signed press reaches the queue, and only its author gets a reply."""
    assert channel.press("Replay") == {"ok": True, "response": {}}
    assert channel.actions.sent == [ActionRequest(Verb.REPLAY, SEEN, "ada (U0ADA)")]
    assert len(channel.seen_by("ada")["private"]) == 1
    assert channel.seen_by("bob")["private"] == []


def test_a_press_that_slack_sends_again_is_one_request(channel: Channel) -> None:
    """A press that Slack sends three times, as it does when it heard nothing, is one."""
    channel.slack.users.sends_again = 2
    assert channel.press("Discard")["ok"]
    assert len(channel.actions.sent) == 1


def test_publishing_takes_a_reason(channel: Channel) -> None:
    """The form stays open without a reason, and closes with one."""
    assert channel.press("Publish anyway")["ok"]
    assert channel.submit(" ")["response"]["response_action"] == "errors"
    assert channel.submit("it is known") == {"ok": True, "response": {}}
    assert channel.seen_by("ada")["forms"] == []
    assert channel.actions.sent == [ActionRequest(Verb.PUBLISH, SEEN, "ada (U0ADA)", "it is known")]


def test_slack_waits_three_seconds_at_most(channel: Channel, tmp_path: Path) -> None:
    """An app that answers after three seconds counts as failed."""
    with wire.silent() as nobody:
        install(tmp_path, replace(_app(tmp_path), request_url=nobody))
        channel.slack.users.patience = 0.1
        assert "did not answer" in channel.press("Replay")["error"]


def _app(home: Path) -> App:
    app = installed(home)
    assert app
    return app


def test_a_trigger_opens_one_form(channel: Channel) -> None:
    """A used or unknown trigger is refused permanently."""
    with pytest.raises(Permanent, match="invalid_trigger_id"):
        replies(channel.url).open("made-up", VIEW)


def test_a_wrong_token_opens_nothing(channel: Channel) -> None:
    """An unknown token is an error that does not contain it."""
    with pytest.raises(Transient, match="SLACK_TOKEN_REFUSED") as refusal:
        replies(channel.url, "xoxb-wrong").open("trigger", VIEW)
    assert "xoxb" not in str(refusal.value)


@pytest.mark.parametrize(
    "address",
    [
        "https://hooks.slack.com.evil.example/actions/1",
        "https://hooks.slack.com@evil.example/actions/1",
        "https://hooks.slack.com:8443/actions/1",
        "http://hooks.slack.com/actions/1",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "//hooks.slack.com/actions/1",
        "http://[",
        "",
    ],
)
def test_nothing_is_sent_elsewhere(address: str) -> None:
    """A response address that is not Slack's is never called."""
    with pytest.raises(Permanent, match="NOT_SLACK"):
        replies(wire.nobody()).reply(address, "x")
