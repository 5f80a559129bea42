"""Lambda: the address that Slack calls when somebody presses a button. Queues what they want.

Outside the deployment's network, and open to the internet: it believes nothing that Slack has not
signed. Its imports are few, as Slack waits 3 seconds also for one that starts cold.
"""

import os
import time
from functools import cache

import boto3
from botocore.config import Config
from slack_sdk import WebClient

from functions.adapters.secrets import Secret
from functions.notifications.interactions import ActionQueue, Reception, url_handler
from functions.notifications.slack import SlackReplies
from functions.settings import ActionSettings

# What does not answer at once answers too late.
_CONFIG = Config(retries={"total_max_attempts": 2}, connect_timeout=1, read_timeout=1)


@cache
def reception() -> Reception:
    """What this Lambda's environment answers with, made once an instance."""
    settings = ActionSettings.of(os.environ)
    secret = Secret(boto3.client("secretsmanager", config=_CONFIG), settings.slack_token_secret)
    return Reception(
        users=settings.users,
        team=settings.slack_team,
        secret=secret,
        actions=ActionQueue(boto3.client("sqs", config=_CONFIG), settings.action_queue),
        replies=SlackReplies(WebClient(timeout=2), secret, settings.slack_url),
        now=time.time,
    )


handler = url_handler(reception)
