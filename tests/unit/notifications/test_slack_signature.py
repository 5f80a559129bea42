"""Only requests that Slack signed with the secret are accepted."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.notifications.interactions import Refused, Request
from functions.notifications.slack import SlackSecret, bot_token
from lakegate.errors import Transient
from tests.fakes.slack import NOW, SIGNING_SECRET, event, example, posted

BOTH = '{"token": "xoxb-1", "signing_secret": "8f2"}'
PRESS = example("slack_block_actions")


def is_signed(document: dict[str, Any], now: float = NOW) -> bool:
    """Return whether the request in an event is accepted as Slack's."""
    return Request.of(document).is_signed(SIGNING_SECRET, lambda: now)


def status(document: dict[str, Any]) -> int:
    """Return the status of a refusal before verification."""
    with pytest.raises(Refused) as refusal:
        Request.of(document)
    return refusal.value.status


@pytest.mark.parametrize("plain", [False, True])
def test_slacks_request_is_understood(plain: bool) -> None:
    """A request is verified and read in every encoding of the function URL."""
    document = posted(PRESS, plain=plain)
    assert is_signed(document)
    assert Request.of(document).payload == PRESS


def test_slacks_own_example_is_verified() -> None:
    """The example in Slack's documentation has the documented signature."""
    body = (
        "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow"
        "&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner"
        "&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands"
        "%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
        "&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
    request = Request(body, "1531420618", signature)
    assert request.is_signed("8f742231b10e8888abcd99yyyzzz85a5", lambda: 1531420618.0)


@pytest.mark.parametrize("seconds", [-301, 301, 86_400])
def test_an_old_request_is_not_slacks(seconds: int) -> None:
    """A request more than five minutes old, or ahead, is refused."""
    assert is_signed(posted(PRESS), NOW + 299)
    assert not is_signed(posted(PRESS), NOW + seconds)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-slack-signature": "v0=" + "0" * 64},
        {"x-slack-signature": "v0=ü"},
        {"x-slack-signature": ""},
        {"x-slack-request-timestamp": "now"},
        {"x-slack-request-timestamp": "9" * 5000},
        {"x-slack-request-timestamp": ""},
        {"x-slack-request-timestamp": str(int(NOW) + 1)},
    ],
)
def test_another_signature_is_not_slacks(headers: dict[str, str]) -> None:
    """Wrong, missing or malformed headers are refused."""
    document = posted(PRESS)
    document["headers"] |= headers
    assert not is_signed(document)


def test_without_headers_it_is_not_slacks() -> None:
    """A request without headers is refused."""
    document = posted(PRESS)
    document["headers"] = {"host": "x"}
    assert not is_signed(document)


def test_a_changed_body_is_not_slacks() -> None:
    """The signature covers the whole body."""
    document = posted(PRESS, plain=True)
    document["body"] += "&x=1"
    assert not is_signed(document)


def test_a_request_that_cannot_be_slacks_is_refused_at_once() -> None:
    """Another method, a huge body and a binary body are refused before verification."""
    got = example("function_url")
    got["requestContext"]["http"]["method"] = "GET"
    assert status(got) == 405
    assert status(event("x" * 1_000_001, plain=True)) == 413
    assert status(event("") | {"body": "*", "isBase64Encoded": True}) == 400
    latin = base64.b64encode(b"\xff").decode()
    assert status(event("") | {"body": latin, "isBase64Encoded": True}) == 400


@pytest.mark.parametrize(
    "body",
    [
        "",
        "payload=",
        "payload={",
        "payload=1&payload=2",
        "document={}",
        "payload=" + "[" * 100_000,
        "&".join(f"x{n}=1" for n in range(99)),
    ],
)
def test_without_a_document_it_is_refused(body: str) -> None:
    """A signed body without one JSON document is refused."""
    with pytest.raises(Refused) as refusal:
        _ = Request.of(event(body)).payload
    assert refusal.value.status == 400


@given(st.text(max_size=50), st.text(max_size=50), st.text(max_size=50))
def test_no_signature_is_guessed(body: str, stamp: str, signature: str) -> None:
    """No request without the secret is accepted."""
    assert not Request(body, stamp, signature).is_signed(SIGNING_SECRET, lambda: NOW)


def test_the_token_may_stand_alone() -> None:
    """A secret for a deployment without buttons is the token alone."""
    assert SlackSecret.of("xoxb-1\n") == SlackSecret("xoxb-1", "")


def test_both_are_given_as_json() -> None:
    """JSON holds the token and the signing secret."""
    assert SlackSecret.of(BOTH) == SlackSecret("xoxb-1", "8f2")
    assert bot_token(BOTH) == bot_token("xoxb-1") == "xoxb-1"


@pytest.mark.parametrize("text", ['{"token": "xoxb-hidden"', '{"tokens": "xoxb-hidden"}', "{}"])
def test_an_invalid_secret_is_not_shown(text: str) -> None:
    """The error for an invalid secret shows its format and no content, and is transient."""
    with pytest.raises(Transient, match="signing_secret") as refusal:
        SlackSecret.of(text)
    assert "hidden" not in str(refusal.value)
    assert refusal.value.__cause__ is None


def test_neither_is_shown() -> None:
    """The value's repr shows no secret."""
    assert "8f2" not in repr(SlackSecret.of(BOTH))
    assert "xoxb" not in repr(SlackSecret.of(BOTH))
