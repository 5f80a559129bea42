"""Slack's Web API and response addresses, as far as whoever presses a button needs them at once."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.webhook import WebhookClient

from functions.people.slack_secret import bot_token
from functions.secret_store import Secret
from lakegate.errors import LakegateError, Permanent, Transient

_RESPONSES = "https://hooks.slack.com"
_SECONDS = 1  # of the 3 that Slack waits for all of it


class SlackReplies:
    """What is shown to one person: a form, or words that nobody else sees."""

    def __init__(
        self, client: WebClient, secret: Secret, slack_url: str = "", seconds: int = _SECONDS
    ) -> None:
        """`slack_url` is what replaces Slack's own address, "" where nothing does.

        `seconds` is how long a response address may take.

        Nothing is sent anywhere but there and to where Slack has its response addresses.
        """
        self._client = client
        if slack_url:
            client.base_url = slack_url
        self._secret = secret
        self._seconds = seconds
        self._places = {urlsplit(url)[:2] for url in (_RESPONSES, slack_url) if url}

    def open(self, trigger: str, view: Mapping[str, Any]) -> None:
        """See Replies.open."""
        text = self._secret.text()
        try:
            self._open(text, trigger, view)
        except _TokenRefused:
            self._open(self._secret.after(text), trigger, view)

    def tell(self, address: str, words: str) -> None:
        """See Replies.tell."""
        if not _is_in(self._places, address):
            raise Permanent("NOT_SLACK", "that is not where Slack takes responses")
        with _translated():
            answer = WebhookClient(address, timeout=self._seconds).send(
                text=words, response_type="ephemeral", replace_original=False
            )
        if answer.status_code >= 300:
            raise Permanent("SLACK_REFUSED", f"Slack answered {answer.status_code}")

    def _open(self, text: str, trigger: str, view: Mapping[str, Any]) -> None:
        self._client.token = bot_token(text)
        with _translated():
            self._client.views_open(trigger_id=trigger, view=dict(view))


def _is_in(places: Collection[tuple[str, str]], address: str) -> bool:
    try:
        return urlsplit(address)[:2] in places
    except ValueError:
        return False


class _TokenRefused(Transient):
    """Slack does not take the bot's token."""


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except SlackApiError as error:
        raise _refusal(error) from error
    except (SlackClientError, OSError, HTTPException, ValueError) as error:
        raise Transient("SLACK_UNAVAILABLE", f"Slack did not answer: {error}") from error


def _refusal(error: SlackApiError) -> LakegateError:
    code = str(error.response.get("error", "")) if hasattr(error.response, "get") else ""
    if code in ("invalid_auth", "not_authed", "token_expired", "token_revoked"):
        return _TokenRefused("SLACK_TOKEN_REFUSED", f"Slack refuses the bot's token ({code})")
    return Permanent("SLACK_REFUSED", f"Slack refused the form: {code}")
