"""What Slack's secret holds."""

import json
from dataclasses import dataclass, field

from lakegate.errors import Transient


@dataclass(frozen=True)
class SlackSecret:
    """The bot's token, and what Slack signs its requests with, "" where no buttons are wanted."""

    token: str = field(repr=False)
    signing_secret: str = field(default="", repr=False)

    @classmethod
    def of(cls, text: str) -> "SlackSecret":
        """The secret in a text: the token alone, or JSON with `token` and `signing_secret`.

        Raises Transient SLACK_SECRET_UNREADABLE, which tells nothing of the text: people mend it.
        """
        if not text.lstrip().startswith("{"):
            return cls(text.strip())
        try:
            held = json.loads(text)
            return cls(str(held["token"]).strip(), str(held.get("signing_secret", "")).strip())
        except (ValueError, KeyError):
            message = 'Slack\'s secret must be its token, or {"token": …, "signing_secret": …}'
            raise Transient("SLACK_SECRET_UNREADABLE", message) from None


def bot_token(text: str) -> str:
    """The token in a secret's text. Raises as SlackSecret.of does."""
    return SlackSecret.of(text).token
