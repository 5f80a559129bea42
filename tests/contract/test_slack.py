"""The local Slack behaves as slack_sdk expects."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler

from infra.local.parts import free_port
from tests.waiting import PATIENCE, eventually

TOKEN = "xoxb-lakegate-local"
CHANNEL = "#data-alerts"
BUTTON = {"type": "button", "text": {"type": "plain_text", "text": "Replay"}}


def text(length: int, kind: str = "mrkdwn") -> dict[str, Any]:
    """Return a text object of that length."""
    return {"type": kind, "text": "x" * length}


def section(length: int = 1, **more: Any) -> dict[str, Any]:
    """Return a section with a text of that length."""
    return {"type": "section", "text": text(length), **more}


def header(length: int, kind: str = "plain_text") -> dict[str, Any]:
    """Return a header of that length."""
    return {"type": "header", "text": text(length, kind)}


class Service:
    """The stand-in in a process of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = free_port(set())
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [sys.executable, "-m", "infra.local.slack", "--port", str(self.port)]
        self._process = subprocess.Popen([*command, "--home", str(self.home)])
        eventually(self._answers, message="the service does not answer")

    def stop(self, how: int = signal.SIGTERM) -> None:
        """End its process with this signal."""
        self._process.send_signal(how)
        self._process.wait()

    def _answers(self) -> bool:
        try:
            return requests.get(f"{self.url}/messages", timeout=5).ok
        except requests.RequestException:
            return False

    def client(self, token: str | None = TOKEN) -> WebClient:
        """Return slack_sdk's client for it."""
        return WebClient(token=token, base_url=f"{self.url}/api/")

    def control(self, **faults: object) -> None:
        """Set these faults."""
        requests.put(f"{self.url}/_control", json=faults, timeout=PATIENCE).raise_for_status()

    def messages(self) -> list[dict[str, Any]]:
        """Return the messages so far."""
        return requests.get(f"{self.url}/messages", timeout=PATIENCE).json()

    def last(self) -> dict[str, Any]:
        """Return the newest message."""
        return self.messages()[-1]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("slack"))
    service.start()
    yield service
    service.stop()


@pytest.fixture
def service(running: Service) -> Iterator[Service]:
    """Yield the service that the tests share; each leaves it without faults."""
    yield running
    running.control()


def refusal(service: Service, **call: Any) -> dict[str, Any]:
    """Return the answer to a refused message, which is not stored."""
    before = service.messages()
    with pytest.raises(SlackApiError) as raised:
        service.client().chat_postMessage(**{"channel": CHANNEL, "text": "hello", **call})
    assert service.messages() == before
    return raised.value.response.data


def test_a_message_is_kept_as_it_was_sent(service: Service) -> None:
    """A message with text and blocks is accepted, kept and shown."""
    blocks = [header(150), section(3000), {"type": "divider"}]
    answer = service.client().chat_postMessage(channel=CHANNEL, text="hello", blocks=blocks)
    assert answer["ok"]
    assert answer["message"]["blocks"] == blocks
    kept = service.last()
    assert {name: kept[name] for name in ("channel", "text", "blocks", "ts")} == {
        "channel": CHANNEL,
        "text": "hello",
        "blocks": blocks,
        "ts": answer["ts"],
    }


def test_a_form_is_taken_as_json_is(service: Service) -> None:
    """A message may be a form with blocks as JSON and with the token."""
    form = {"token": TOKEN, "channel": CHANNEL, "blocks": json.dumps([section()])}
    url = f"{service.url}/api/chat.postMessage"
    assert requests.post(url, data=form, timeout=PATIENCE).json()["ok"]
    assert service.last()["blocks"] == [section()]


def test_messages_survive_a_kill(tmp_path: Path) -> None:
    """Accepted messages are there after a kill, in order."""
    service = Service(tmp_path / "slack")
    service.start()
    for number in range(3):
        service.client().chat_postMessage(channel=CHANNEL, text=str(number))
    service.stop(signal.SIGKILL)
    service.start()
    assert [message["text"] for message in service.messages()] == ["0", "1", "2"]
    service.stop()


def test_a_message_can_be_changed(service: Service) -> None:
    """An update replaces text and blocks of the message of that time in its channel."""
    client = service.client()
    sent = client.chat_postMessage(channel=CHANNEL, text="old", blocks=[section()])
    client.chat_update(channel=sent["channel"], ts=sent["ts"], text="new")
    assert (service.last()["text"], service.last()["blocks"]) == ("new", [])
    with pytest.raises(SlackApiError, match="message_not_found"):
        client.chat_update(channel=CHANNEL, ts="1.0", text="new")
    with pytest.raises(SlackApiError, match="message_not_found"):
        client.chat_update(channel="#other", ts=sent["ts"], text="new")


def test_only_the_token_lets_in(service: Service) -> None:
    """A call without a token or with a wrong one is refused with Slack's own error."""
    assert service.client().auth_test()["ok"]
    with pytest.raises(SlackApiError, match="invalid_auth"):
        service.client("xoxb-wrong").auth_test()
    with pytest.raises(SlackApiError, match="not_authed"):
        service.client(None).chat_postMessage(channel=CHANNEL, text="hello")


@pytest.mark.parametrize("channel", ["", "#", "Data Alerts", "a.b", "x" * 81])
def test_a_channel_must_be_one(service: Service, channel: str) -> None:
    """An impossible name or id of a channel is channel_not_found."""
    assert refusal(service, channel=channel)["error"] == "channel_not_found"


@pytest.mark.parametrize("channel", ["C012345678", "#a-b_c1", "a-b", "größe"])
def test_a_channel_may_be_named_or_numbered(service: Service, channel: str) -> None:
    """Ids and names, with or without #, are channels."""
    assert service.client().chat_postMessage(channel=channel, text="hello")["ok"]


@pytest.mark.filterwarnings("ignore:The top-level `text` argument is missing")
def test_a_message_must_say_something(service: Service) -> None:
    """A message without text and blocks or with too long a text is refused."""
    assert refusal(service, text="")["error"] == "no_text"
    assert refusal(service, text="x" * 40_001)["error"] == "msg_too_long"
    assert refusal(service, text="", blocks="[")["error"] == "invalid_blocks_format"


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([section()] * 51, "no more than 50 items allowed"),
        ([section(3001)], "text attribute cannot exceed 3000 characters [json-pointer:/blocks/0]"),
        ([section(0)], "empty"),
        (
            [{"type": "divider"}, header(151)],
            "text attribute cannot exceed 150 characters [json-pointer:/blocks/1]",
        ),
        ([header(1, "mrkdwn")], "must be plain_text"),
        ([{"type": "section", "text": {"text": "x"}}], "type"),
        ([{"type": "section", "text": "x"}], "wrong field"),
        ([{"type": "section"}], "text or fields attribute must be specified"),
        ([{"type": "context", "elements": [text(1)] * 11}], "cannot exceed 10"),
        ([{"type": "context", "elements": [{"type": "image"}]}], "missing"),
        ([{"type": "actions", "elements": [BUTTON] * 26}], "cannot exceed 25 elements"),
        ([{"type": "actions", "elements": [BUTTON | {"value": "x" * 2001}]}], "exceed 2000"),
        ([section(block_id="b" * 256)], "block_id cannot exceed 255 characters"),
        ([section(colour="red")], "unknown"),
        ([{"type": "poem"}], "unknown"),
        ([{"type": "input"}], "unsupported type: input"),
        ([{"text": "x"}], "unknown"),
    ],
)
def test_blocks_over_the_limits_are_refused(
    service: Service, blocks: list[dict[str, Any]], message: str
) -> None:
    """Blocks that Block Kit does not allow are invalid_blocks, with the reason."""
    answer = refusal(service, blocks=blocks)
    assert answer["error"] == "invalid_blocks"
    messages = answer["response_metadata"]["messages"]
    assert any(one.startswith("[ERROR] ") and message in one for one in messages), messages


def test_blocks_at_the_limits_are_taken(service: Service) -> None:
    """The largest blocks that Block Kit allows are accepted."""
    image = {"type": "image", "image_url": "https://example.com/x.png", "alt_text": "x"}
    blocks = [
        *[section(3000, block_id=f"{n}".rjust(255, "b")) for n in range(46)],
        header(150),
        {"type": "actions", "elements": [BUTTON | {"value": "x" * 2000}] * 25},
        {"type": "context", "elements": [text(1)] * 9 + [image]},
        {"type": "markdown", "text": "*x*"},
    ]
    assert service.client().chat_postMessage(channel=CHANNEL, text="x", blocks=blocks)["ok"]


def test_it_can_be_away(service: Service) -> None:
    """The chosen number of calls fails with HTTP 503, then messages are accepted."""
    service.control(fail_next=2)
    for _ in range(2):
        with pytest.raises(SlackApiError) as raised:
            service.client().chat_postMessage(channel=CHANNEL, text="hello")
        assert raised.value.response.status_code == 503
    assert service.client().chat_postMessage(channel=CHANNEL, text="hello")["ok"]
    service.control(away_seconds=600)
    assert refusal(service)["error"] == "service_unavailable"


def test_it_can_limit_the_rate(service: Service) -> None:
    """A rate-limited call says when to retry, and slack_sdk's own handler then succeeds."""
    service.control(ratelimit_next=1)
    with pytest.raises(SlackApiError, match="ratelimited") as raised:
        service.client().chat_postMessage(channel=CHANNEL, text="hello")
    assert raised.value.response.status_code == 429
    assert raised.value.response.headers["Retry-After"] == "1"
    service.control(ratelimit_next=1)
    client = service.client()
    client.retry_handlers.append(RateLimitErrorRetryHandler(max_retry_count=1))
    assert client.chat_postMessage(channel=CHANNEL, text="hello")["ok"]


def test_each_channel_takes_a_burst(service: Service) -> None:
    """After a burst a channel takes one message a second; other channels are not limited."""
    service.control(burst=3)

    def is_taken(channel: str) -> bool:
        given = {"token": TOKEN, "channel": channel, "text": "hello"}
        url = f"{service.url}/api/chat.postMessage"
        answer = requests.post(url, data=given, timeout=PATIENCE).json()
        assert answer.get("error", "ratelimited") == "ratelimited"
        return bool(answer["ok"])

    with ThreadPoolExecutor(20) as at_once:  # else a slow machine sends one a second
        taken = list(at_once.map(is_taken, ["#busy"] * 20))
    assert 3 <= taken.count(True) < 20
    assert is_taken("#calm")


def test_a_channel_can_be_missing(service: Service) -> None:
    """A channel can be missing."""
    service.control(missing_channels=[CHANNEL])
    assert refusal(service)["error"] == "channel_not_found"
    assert service.client().chat_postMessage(channel="#other", text="hello")["ok"]


def test_a_channel_can_be_archived(service: Service) -> None:
    """An archived channel refuses messages and updates, each with Slack's own error."""
    client = service.client()
    posted = client.chat_postMessage(channel="#old", text="x")
    service.control(archived_channels=["#old"])
    with pytest.raises(SlackApiError, match="is_archived"):
        client.chat_postMessage(channel="#old", text="y")
    with pytest.raises(SlackApiError, match="is_inactive"):
        client.chat_update(channel=posted["channel"], ts=posted["ts"], text="y")


def test_what_is_unknown_is_refused(service: Service) -> None:
    """An unknown method and an unknown fault are errors."""
    with pytest.raises(SlackApiError, match="unknown_method"):
        service.client().api_call("chat.shout")
    answer = requests.put(f"{service.url}/_control", json={"eat": 1}, timeout=PATIENCE)
    assert answer.status_code == 400
    assert "eat" in answer.json()["message"]
