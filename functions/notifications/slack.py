"""Post alerts and replies with Slack's Web API; post to the log without Slack."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
from functions.model.messages.alert import Alert
from lakegate.errors import LakegateError, Permanent, Transient

_LONGEST_WAIT = 10  # seconds; the function has time for a few such waits
_LONGEST_PAUSE = 3600  # seconds for which an alert is put off; then it is tried
# Slack's error codes ("chat.postMessage", "chat.update").
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
    """A message in Slack, which may have a thread: its channel's id, and its timestamp."""

    channel: str
    ts: str


class ThreadGone(LakegateError):
    """The thread was deleted or locked, or its channel archived."""

    def __init__(self) -> None:
        super().__init__("THREAD_GONE", "the Slack thread is gone")


class SlackAlerts:
    """Alerts in Slack's channels."""

    def __init__(
        self,
        client: WebClient,
        default_channel: str,
        newer: Callable[[str], str] = lambda token: token,
    ) -> None:
        """Use a client with the bot's token; `newer` returns the token to try after a refusal.

        Where Slack asks the client to wait a few seconds, it does.
        """
        client.retry_handlers.append(_ShortWaits(max_retry_count=3))
        self._client = client
        self._default = default_channel
        self._newer = newer

    def post(
        self, channel: str, alert: Alert, thread: Place | None = None, *, shout: bool = False
    ) -> Place:
        """Post an alert in a channel ("" for the default one), or in a thread of it.

        With `shout` the channel shows the reply, too. Raises Transient (such as
        SLACK_TOKEN_REFUSED) when a retry may help, Permanent SLACK_REFUSED when it will not.
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
        """Replace a message by another alert. Raises as `post` does.

        A message that the workspace's rules protect stays unchanged.
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
        with _translated():
            return getattr(self._client, method)(**arguments)


class _ShortWaits(RateLimitErrorRetryHandler):
    """Waits as long as Slack asks, if that is short; otherwise the queue waits."""

    def _can_retry(self, *, response: HttpResponse | None = None, **state: Any) -> bool:
        if response is None or not super()._can_retry(response=response, **state):
            return False
        pause = _pause(response.headers)
        return pause is not None and pause <= _LONGEST_WAIT


class Throttled(Transient):
    """Slack asks for a pause of so many `seconds`, which are too many for the function to wait."""

    def __init__(self, seconds: int) -> None:
        super().__init__("SLACK_UNAVAILABLE", f"Slack asks for a pause of {seconds} seconds")
        self.seconds = seconds


class _TokenRefused(Transient):
    """Slack refused the bot's token: an administrator must store another in its secret."""


class _Refused(Permanent):
    """Slack refuses an alert or a form permanently, with this `answer`."""

    def __init__(self, answer: str) -> None:
        super().__init__("SLACK_REFUSED", f"Slack refused it: {answer}")
        self.answer = answer


def _content(alert: Alert) -> dict[str, Any]:
    return {"text": alert.text, "blocks": [dict(b) for b in alert.blocks], "parse": "none"}


def _refusal(error: SlackApiError) -> Transient | Permanent:
    answer = error.response
    status = getattr(answer, "status_code", 0)
    code = str(answer.get("error") or f"HTTP {status}") if hasattr(answer, "get") else str(answer)
    if (pause := _pause(getattr(answer, "headers", {})) or 0) > _LONGEST_WAIT:
        return Throttled(min(pause, _LONGEST_PAUSE))
    if code in _TRANSIENT or status >= 429:
        return Transient("SLACK_UNAVAILABLE", f"Slack answered: {code}")
    if code in _TOKEN_REFUSED:
        message = f"Slack refused the bot's token ({code}): store a valid one in Slack's secret"
        return _TokenRefused("SLACK_TOKEN_REFUSED", message)
    return _Refused(code)


def _pause(headers: Mapping[str, str | Sequence[str]]) -> int | None:
    """Return for how many seconds Slack wants no call, None if it does not say."""
    told = [value for name, value in headers.items() if name.lower() == "retry-after"]
    text = told[0] if told else ""
    seconds = text if isinstance(text, str) else next(iter(text), "")
    return int(seconds) if seconds.isdigit() else None


@dataclass(frozen=True)
class SlackSecret:
    """The bot's token, and the signing secret of requests, "" without buttons."""

    token: str = field(repr=False)
    signing_secret: str = field(default="", repr=False)

    @classmethod
    def of(cls, text: str) -> "SlackSecret":
        """Return the secret in a text: the token alone, or JSON with `token` and `signing_secret`.

        Raises Transient SLACK_SECRET_UNREADABLE, which never contains the text.
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
    """Return the token in a secret's text. Raises as SlackSecret.of does."""
    return SlackSecret.of(text).token


_RESPONSES = "https://hooks.slack.com"
_SECONDS = 1  # Slack waits 3 seconds for the whole answer


class SlackReplies:
    """Replies that only one person sees: a form, or words."""

    def __init__(
        self, client: WebClient, secret: Secret, slack_url: str = "", seconds: int = _SECONDS
    ) -> None:
        """Use `slack_url` in place of Slack's address, if given.

        `seconds` is the timeout of a response address. Requests go only to these addresses.
        """
        self._client = client
        if slack_url:
            client.base_url = slack_url
        self._secret = secret
        self._seconds = seconds
        self._places = {urlsplit(url)[:2] for url in (_RESPONSES, slack_url) if url}

    def open(self, trigger: str, view: Mapping[str, Any]) -> None:
        """Open a form while its trigger is valid, for 3 seconds. Raises LakegateError."""
        text = self._secret.text()
        try:
            self._open(text, trigger, view)
        except _TokenRefused:
            self._open(self._secret.after(text), trigger, view)

    def reply(self, address: str, words: str) -> None:
        """Post words that only the person with this response address sees. Raises LakegateError."""
        if not _is_in(self._places, address):
            raise Permanent("NOT_SLACK", "the response address is not Slack's")
        with _translated():
            answer = WebhookClient(address, timeout=self._seconds).send(
                text=words, response_type="ephemeral", replace_original=False
            )
        if answer.status_code >= 300:
            raise Permanent("SLACK_REFUSED", f"Slack refused a reply: HTTP {answer.status_code}")

    def _open(self, text: str, trigger: str, view: Mapping[str, Any]) -> None:
        self._client.token = bot_token(text)
        with _translated():
            self._client.views_open(trigger_id=trigger, view=dict(view))


def _is_in(places: Collection[tuple[str, str]], address: str) -> bool:
    try:
        return urlsplit(address)[:2] in places
    except ValueError:
        return False


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except SlackApiError as error:
        raise _refusal(error) from error
    except (SlackClientError, OSError, HTTPException, ValueError) as error:  # the last: no JSON
        raise Transient("SLACK_UNAVAILABLE", f"Slack did not answer: {error}") from error
