"""Lambda: the URL that Slack calls when a button is pressed. Queues the requested action.

It runs outside the deployment's network and is open to the internet, so it accepts only requests
signed by Slack. It imports little, as Slack waits 3 seconds, including a cold start.
"""

import os
import time
from functools import cache

import boto3
from botocore.config import Config
from slack_sdk import WebClient

from functions.adapters.secrets import Secret
from functions.adapters.sqs import ActionQueue
from functions.notifications.interactions import Endpoint, url_handler
from functions.notifications.slack import SlackReplies
from functions.settings import ActionSettings

# A slow answer would come too late for Slack.
_CONFIG = Config(retries={"total_max_attempts": 2}, connect_timeout=1, read_timeout=1)


@cache
def endpoint() -> Endpoint:
    """Return the endpoint of this Lambda's environment, created once."""
    settings = ActionSettings.of(os.environ)
    secret = Secret(boto3.client("secretsmanager", config=_CONFIG), settings.slack_token_secret)
    return Endpoint(
        users=settings.users,
        team=settings.slack_team,
        secret=secret,
        actions=ActionQueue(boto3.client("sqs", config=_CONFIG), settings.action_queue),
        replies=SlackReplies(WebClient(timeout=2), secret, settings.slack_url),
        now=time.time,
    )


handler = url_handler(endpoint)
