"""Slack's secret: the bot's token alone, or with what Slack's requests are signed with."""

import pytest

from functions.notifications.slack import SlackSecret, bot_token
from lakegate.errors import Transient

BOTH = '{"token": "xoxb-1", "signing_secret": "8f2"}'


def test_the_token_may_stand_alone() -> None:
    """A secret as deployments without buttons have it is the token, and nothing signs."""
    assert SlackSecret.of("xoxb-1\n") == SlackSecret("xoxb-1", "")


def test_both_are_given_as_json() -> None:
    """JSON tells the token and what requests are signed with; either can be had alone."""
    assert SlackSecret.of(BOTH) == SlackSecret("xoxb-1", "8f2")
    assert bot_token(BOTH) == bot_token("xoxb-1") == "xoxb-1"


@pytest.mark.parametrize("text", ['{"token": "xoxb-hidden"', '{"tokens": "xoxb-hidden"}', "{}"])
def test_what_is_unreadable_is_not_told(text: str) -> None:
    """The refusal says how the secret must look, and nothing of what it holds; a retry may help."""
    with pytest.raises(Transient, match="signing_secret") as refusal:
        SlackSecret.of(text)
    assert "hidden" not in str(refusal.value)
    assert refusal.value.__cause__ is None


def test_neither_is_shown() -> None:
    """Printed by accident, the value shows none of its secrets."""
    assert "8f2" not in repr(SlackSecret.of(BOTH))
    assert "xoxb" not in repr(SlackSecret.of(BOTH))
