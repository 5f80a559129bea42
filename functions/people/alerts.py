"""Where people see alerts: Slack's Web API, or the log where no Slack is set up."""

from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler
from slack_sdk.http_retry.response import HttpResponse

from functions.people.messages import Alert
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
