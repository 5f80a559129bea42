"""The local Slack behaves as slack_sdk expects."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler

from infra.local.slack.people import TOKEN
from infra.local.slack.server import Slack, web_app
from tests.contract.test_replies import served
from tests.waiting import PATIENCE

CHANNEL = "#data-alerts"


def section(length: int = 1, **more: Any) -> dict[str, Any]:
    """Return a section with a text of that length."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": "x" * length}, **more}


def header(length: int, kind: str = "plain_text") -> dict[str, Any]:
    """Return a header of that length."""
    return {"type": "header", "text": {"type": kind, "text": "x" * length}}


@dataclass(frozen=True)
class Service:
    """The stand-in at its address."""

    url: str

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


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with served(web_app(Slack(tmp_path))) as url:
        yield Service(url)


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


def test_messages_survive_a_kill(tmp_path: Path, service: Service) -> None:
    """Accepted messages are on the disk before their answer, in order."""
    for number in range(3):
        service.client().chat_postMessage(channel=CHANNEL, text=str(number))
        found = Slack(tmp_path).messages.all()
        assert [message["text"] for message in found] == [str(n) for n in range(number + 1)]


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
    with pytest.raises(SlackApiError, match="invalid_auth"):
        service.client("xoxb-wrong").chat_postMessage(channel=CHANNEL, text="hello")
    with pytest.raises(SlackApiError, match="not_authed"):
        service.client(None).chat_postMessage(channel=CHANNEL, text="hello")


def test_a_channel_must_be_one(service: Service) -> None:
    """Ids and names, with or without #, are channels; all else is channel_not_found."""
    for channel in ("", "#", "Data Alerts", "a.b", "x" * 81):
        assert refusal(service, channel=channel)["error"] == "channel_not_found"
    for channel in ("C012345678", "#a-b_c1", "a-b", "größe"):
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
        (
            [{"type": "divider"}, header(151)],
            "text attribute cannot exceed 150 characters [json-pointer:/blocks/1]",
        ),
        ([header(1, "mrkdwn")], "must be plain_text"),
        ([{"type": "section", "text": "x"}], "wrong field"),
        ([section(colour="red")], "unknown"),
        ([{"type": "poem"}], "unknown"),
        ([{"type": "input"}], "unsupported type: input"),
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


def test_a_channel_can_be_missing_or_archived(service: Service) -> None:
    """Such a channel refuses messages and updates, each with Slack's own error."""
    client = service.client()
    posted = client.chat_postMessage(channel="#old", text="x")
    service.control(missing_channels=[CHANNEL], archived_channels=["#old"])
    assert refusal(service)["error"] == "channel_not_found"
    assert refusal(service, channel="#old")["error"] == "is_archived"
    with pytest.raises(SlackApiError, match="is_inactive"):
        client.chat_update(channel=posted["channel"], ts=posted["ts"], text="y")


def test_what_is_unknown_is_refused(service: Service) -> None:
    """An unknown method and an unknown fault are errors."""
    with pytest.raises(SlackApiError, match="unknown_method"):
        service.client().api_call("chat.shout")
    answer = requests.put(f"{service.url}/_control", json={"eat": 1}, timeout=PATIENCE)
    assert answer.status_code == 400
    assert "eat" in answer.json()["message"]
