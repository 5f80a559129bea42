"""Lambda: the queue of alerts. Posts them to Slack and to the SNS topic.

It runs outside the deployment's network, because Slack is on the internet.
"""

import os
import time
from functools import cache

import boto3
from slack_sdk import WebClient

from functions.adapters.secrets import Secret
from functions.notifications.email import Topic
from functions.notifications.notify import AlertChannels, notify
from functions.notifications.slack import LogAlerts, SlackAlerts, bot_token
from functions.notifications.threads import Threads
from functions.settings import AlertSettings, SlackSettings
from functions.sqs_handler import sqs_handler
from functions.telemetry import logger
from functions.wiring import CONFIG

_DAY, _WEEK = 86_400, 7


@cache
def channels() -> AlertChannels:
    """Return the alert channels of this Lambda's environment, created once."""
    settings = AlertSettings.of(os.environ)
    table = boto3.resource("dynamodb", config=CONFIG).Table(settings.threads_table)
    window, kept = settings.repeat_minutes * 60, (settings.keep_days + _WEEK) * _DAY
    topic, slack = settings.alert_topic, SlackSettings.of(os.environ)
    return AlertChannels(
        threads=Threads(table, window, kept, time.time),
        log=LogAlerts(logger),
        slack=_slack(slack),
        topic=Topic(boto3.client("sns", config=CONFIG), topic) if topic else None,
        has_buttons=bool(slack.slack_users),
    )


def _slack(settings: SlackSettings) -> SlackAlerts | None:
    if not settings.slack_token_secret:
        return None
    vault = boto3.client("secretsmanager", config=CONFIG)
    token = Secret(vault, settings.slack_token_secret, part=bot_token)
    client = WebClient(token.text(), timeout=10)
    if settings.slack_url:
        client.base_url = settings.slack_url
    return SlackAlerts(client, settings.slack_channel, token.after)


handler = sqs_handler(notify, channels)
