"""Where people see alerts: Slack's Web API, or the log where no Slack is set up."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler
from slack_sdk.http_retry.response import HttpResponse
from slack_sdk.webhook import WebhookClient

from functions.adapters.secrets import Secret
from functions.model.alert import (
    Alert,
)
from lakegate.errors import LakegateError, Permanent, Transient

_LONGEST_WAIT = 10  # seconds, a few of which a function has time for
# Slack's errors ("chat.postMessage", "chat.update").
_TOKEN_REFUSED = (
    *("invalid_auth", "not_authed", "account_inactive", "token_expired", "token_revoked"),
)
_TRANSIENT = (
    *("ratelimited", "rate_limited", "service_unavailable", "internal_error", "fatal_error"),
    *("request_timeout", "team_added_to_org"),
)
_NOT_EDITABLE = ("cant_update_message", "edit_window_closed")


@dataclass(frozen=True)
class Place:
    """A message in Slack, which may have a thread: its channel's id, and its time."""

    channel: str
    ts: str


class ThreadGone(LakegateError):
    """A thread that takes nothing any more: it is deleted, locked, or in an archived channel."""

    def __init__(self) -> None:
        super().__init__("THREAD_GONE", "the thread is not there any more")


class SlackAlerts:
    """Alerts in Slack's channels."""

    def __init__(
        self,
        client: WebClient,
        default_channel: str,
        newer: Callable[[str], str] = lambda token: token,
    ) -> None:
        """`client` holds the bot's token; `newer` gives what to try where Slack refuses that.

        Where Slack has the client wait for a few seconds, it does.
        """
        client.retry_handlers.append(_ShortWaits(max_retry_count=3))
        self._client = client
        self._default = default_channel
        self._newer = newer

    def post(
        self, channel: str, alert: Alert, thread: Place | None = None, *, shout: bool = False
    ) -> Place:
        """Show an alert in a channel ("" for the default one), or in a thread of it.

        With `shout` the channel shows the reply, too. Raises Transient when trying again may help,
        SLACK_TOKEN_REFUSED among it, Permanent SLACK_REFUSED when it will not.
        """
        where = {"thread_ts": thread.ts, "reply_broadcast": shout} if thread else {}
        answer = self._call(
            "chat_postMessage",
            channel=channel or self._default,
            unfurl_links=False,
            unfurl_media=False,
            **_content(alert),
            **where,
        )
        return Place(str(answer["channel"]), str(answer["ts"]))

    def update(self, place: Place, alert: Alert) -> None:
        """Have a message show another alert. Raises as `post` does.

        A message that may not be edited, by the workspace's rules, stays as it is.
        """
        try:
            self._call("chat_update", channel=place.channel, ts=place.ts, **_content(alert))
        except _Refused as refused:
            if refused.answer not in _NOT_EDITABLE:
                raise

    def _call(self, method: str, **arguments: Any) -> Any:
        try:
            return self._try(method, arguments)
        except _TokenRefused:
            refused = str(self._client.token)
            self._client.token = self._newer(refused)
            if self._client.token == refused:
                raise
            return self._try(method, arguments)

    def _try(self, method: str, arguments: dict[str, Any]) -> Any:
        try:
            return getattr(self._client, method)(**arguments)
        except SlackApiError as error:
            raise _refusal(error) from error
        except (SlackClientError, OSError, HTTPException, ValueError) as error:  # no JSON either
            raise Transient("SLACK_UNAVAILABLE", f"Slack did not answer: {error}") from error


class LogAlerts:
    """Alerts in the log, for deployments without Slack."""

    def __init__(self, logger: Any) -> None:
        """`logger` is a standard logger."""
        self._logger = logger

    def post(self, channel: str, alert: Alert) -> None:
        """Log an alert for a channel."""
        self._logger.error(alert.text, extra={"channel": channel, "blocks": alert.blocks})


class _ShortWaits(RateLimitErrorRetryHandler):
    """Waits as long as Slack says, where that is not long; else the queue waits."""

    def _can_retry(self, *, response: HttpResponse | None = None, **state: Any) -> bool:
        if response is None or not super()._can_retry(response=response, **state):
            return False
        told = next(iter(response.headers.get("retry-after", [])), "")
        return told.isdigit() and int(told) <= _LONGEST_WAIT


class _TokenRefused(Transient):
    """Slack does not take the bot's token: people must put another into its secret."""


class _Refused(Permanent):
    """What Slack refuses with this `answer`, however often it is tried."""

    def __init__(self, answer: str) -> None:
        super().__init__("SLACK_REFUSED", f"Slack refused the alert: {answer}")
        self.answer = answer


def _content(alert: Alert) -> dict[str, Any]:
    return {"text": alert.text, "blocks": [dict(b) for b in alert.blocks], "parse": "none"}


def _refusal(error: SlackApiError) -> Transient | Permanent:
    answer = error.response
    status = getattr(answer, "status_code", 0)
    code = str(answer.get("error") or f"HTTP {status}") if hasattr(answer, "get") else str(answer)
    if code in _TRANSIENT or status >= 429:
        return Transient("SLACK_UNAVAILABLE", f"Slack answered: {code}")
    if code in _TOKEN_REFUSED:
        message = f"Slack refuses the bot's token ({code}): put a valid one into Slack's secret"
        return _TokenRefused("SLACK_TOKEN_REFUSED", message)
    return _Refused(code)


# What Slack's secret holds.


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


# Slack's Web API and response addresses, as far as whoever presses a button needs them at once.

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
        except _ThreadTokenRefused:
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


class _ThreadTokenRefused(Transient):
    """Slack does not take the bot's token."""


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except SlackApiError as error:
        raise _thread_refusal(error) from error
    except (SlackClientError, OSError, HTTPException, ValueError) as error:
        raise Transient("SLACK_UNAVAILABLE", f"Slack did not answer: {error}") from error


def _thread_refusal(error: SlackApiError) -> LakegateError:
    code = str(error.response.get("error", "")) if hasattr(error.response, "get") else ""
    if code in ("invalid_auth", "not_authed", "token_expired", "token_revoked"):
        return _ThreadTokenRefused("SLACK_TOKEN_REFUSED", f"Slack refuses the bot's token ({code})")
    return Permanent("SLACK_REFUSED", f"Slack refused the form: {code}")
