"""Slack's secret holds the bot's token alone, or with the signing secret."""

import pytest

from functions.notifications.slack import SlackSecret, bot_token
from lakegate.errors import Transient

BOTH = '{"token": "xoxb-1", "signing_secret": "8f2"}'


def test_the_token_may_stand_alone() -> None:
    """A secret for a deployment without buttons is the token alone."""
    assert SlackSecret.of("xoxb-1\n") == SlackSecret("xoxb-1", "")


def test_both_are_given_as_json() -> None:
    """JSON holds the token and the signing secret."""
    assert SlackSecret.of(BOTH) == SlackSecret("xoxb-1", "8f2")
    assert bot_token(BOTH) == bot_token("xoxb-1") == "xoxb-1"


@pytest.mark.parametrize("text", ['{"token": "xoxb-hidden"', '{"tokens": "xoxb-hidden"}', "{}"])
def test_what_is_unreadable_is_not_reported(text: str) -> None:
    """The error for an invalid secret shows its format and no content, and is transient."""
    with pytest.raises(Transient, match="signing_secret") as refusal:
        SlackSecret.of(text)
    assert "hidden" not in str(refusal.value)
    assert refusal.value.__cause__ is None


def test_neither_is_shown() -> None:
    """The value's repr shows no secret."""
    assert "8f2" not in repr(SlackSecret.of(BOTH))
    assert "xoxb" not in repr(SlackSecret.of(BOTH))
