"""What tells people, wired from a Lambda's environment.

Apart from the other adapters: Slack's client takes a tenth of a cold start; only on_alert needs it.
"""

import os
import time
from functools import cache

import boto3
from botocore.config import Config
from slack_sdk import WebClient

from functions.people.alerts import LogAlerts, SlackAlerts
from functions.people.slack_secret import bot_token
from functions.people.telling import Desk
from functions.people.threads import Threads
from functions.people.topic import Topic
from functions.secret_store import Secret
from functions.settings import AlertSettings, SlackSettings
from functions.telemetry import logger

_DAY, _WEEK = 86_400, 7
_CONFIG = Config(retries={"mode": "standard", "max_attempts": 4})


@cache
def desk() -> Desk:
    """What this Lambda's environment has people told with, made once an instance."""
    settings = AlertSettings.of(os.environ)
    table = boto3.resource("dynamodb", config=_CONFIG).Table(settings.threads_table)
    window, kept = settings.repeat_minutes * 60, (settings.keep_days + _WEEK) * _DAY
    topic, slack = settings.alert_topic, SlackSettings.of(os.environ)
    return Desk(
        threads=Threads(table, window, kept, time.time),
        log=LogAlerts(logger),
        slack=_slack(slack),
        topic=Topic(boto3.client("sns", config=_CONFIG), topic) if topic else None,
        has_buttons=bool(slack.slack_users),
    )


def _slack(settings: SlackSettings) -> SlackAlerts | None:
    if not settings.slack_token_secret:
        return None
    vault = boto3.client("secretsmanager", config=_CONFIG)
    token = Secret(vault, settings.slack_token_secret, part=bot_token)
    client = WebClient(token.text(), timeout=10)
    if settings.slack_url:
        client.base_url = settings.slack_url
    return SlackAlerts(client, settings.slack_channel, token.after)
