"""Where people see alerts: Slack's Web API, or the log where no Slack is set up."""

from collections.abc import Callable
from http.client import HTTPException
from typing import Any, Protocol

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError

from functions.messages import Alert
from functions.queues import unqueued
from functions.telemetry import logger
from lakegate.errors import Permanent, Transient

_TOKEN_REFUSED = ("invalid_auth", "not_authed", "token_expired", "token_revoked")
_TRANSIENT = ("ratelimited", "service_unavailable", "internal_error", "fatal_error")


class Alerts(Protocol):
    """A place where people see alerts."""

    def post(self, channel: str, alert: Alert) -> None:
        """Show an alert in a channel ("" for the default one).

        Raises Transient when trying again may help, Permanent SLACK_REFUSED when it will not.
        """


def tell(alerts: Alerts, body: str) -> None:
    """Show people the alert in a message's body; in the default channel where its own refuses.

    Raises what `post` raises: nothing is lost, the message comes again.
    """
    channel, alert = unqueued(body)
    try:
        alerts.post(channel, alert)
    except Permanent as refused:
        logger.error("alert refused, trying the default channel", extra={"refusal": str(refused)})
        alerts.post("", alert)


class SlackAlerts:
    """Alerts in Slack's channels."""

    def __init__(
        self,
        client: WebClient,
        default_channel: str,
        newer: Callable[[str], str] = lambda token: token,
    ) -> None:
        """`client` holds the bot's token; `newer` gives what to try where Slack refuses that."""
        self._client = client
        self._default = default_channel
        self._newer = newer

    def post(self, channel: str, alert: Alert) -> None:
        """See Alerts.post. Raises Transient SLACK_TOKEN_REFUSED, too."""
        try:
            self._send(channel, alert)
        except _TokenRefused:
            refused = str(self._client.token)
            self._client.token = self._newer(refused)
            if self._client.token == refused:
                raise
            self._send(channel, alert)

    def _send(self, channel: str, alert: Alert) -> None:
        try:
            self._client.chat_postMessage(
                channel=channel or self._default,
                text=alert.text,
                blocks=[dict(block) for block in alert.blocks],
                unfurl_links=False,
                unfurl_media=False,
                parse="none",
            )
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
        """See Alerts.post."""
        self._logger.error(alert.text, extra={"channel": channel, "blocks": alert.blocks})


class _TokenRefused(Transient):
    """Slack does not take the bot's token: people must put another into its secret."""


def _refusal(error: SlackApiError) -> Transient | Permanent:
    answer = error.response
    status = getattr(answer, "status_code", 0)
    code = str(answer.get("error") or f"HTTP {status}") if hasattr(answer, "get") else str(answer)
    if code in _TRANSIENT or status >= 429:
        return Transient("SLACK_UNAVAILABLE", f"Slack answered: {code}")
    if code in _TOKEN_REFUSED:
        message = f"Slack refuses the bot's token ({code}): put a valid one into Slack's secret"
        return _TokenRefused("SLACK_TOKEN_REFUSED", message)
    return Permanent("SLACK_REFUSED", f"Slack refused the alert: {code}")
