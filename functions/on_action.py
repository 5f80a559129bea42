"""Lambda: the address that Slack calls when somebody presses a button. Queues what they want.

Outside the deployment's network, and open to the internet: it believes nothing that Slack has not
signed. Its imports are few, as Slack waits 3 seconds also for one that starts cold.
"""

import json
import os
import time
from functools import cache
from typing import Any

import boto3
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.config import Config
from slack_sdk import WebClient

from functions.answering import Desk, answer
from functions.secret_store import Secret
from functions.settings import ActionSettings
from functions.slack_replies import Replies
from functions.slack_requests import Refused
from functions.telemetry import logger
from functions.wishes import ActionQueue
from lakegate.errors import LakegateError

# What does not answer at once answers too late.
_CONFIG = Config(retries={"total_max_attempts": 2}, connect_timeout=1, read_timeout=1)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer a request to the function URL; a request that is refused is told no more than that."""
    try:
        document = answer(desk(), event)
    except Refused as refused:
        logger.warning("refused", extra={"refusal": refused.code, "why": refused.message})
        return _answer(refused.status, {"error": refused.code})
    except LakegateError as error:
        logger.exception("not taken")
        return _answer(503, {"error": error.code})
    return _answer(200, document)


@cache
def desk() -> Desk:
    """What this Lambda's environment answers with, made once an instance."""
    settings = ActionSettings.of(os.environ)
    secret = Secret(boto3.client("secretsmanager", config=_CONFIG), settings.slack_token_secret)
    return Desk(
        users=settings.users,
        team=settings.slack_team,
        secret=secret,
        actions=ActionQueue(boto3.client("sqs", config=_CONFIG), settings.action_queue),
        replies=Replies(WebClient(timeout=2), secret, settings.slack_url),
        now=time.time,
    )


def _answer(status: int, document: dict[str, Any]) -> dict[str, Any]:
    """The answer as a function URL takes it; Slack asks for an empty body where all is well."""
    headers = {"content-type": "application/json"}
    body = json.dumps(document) if document else ""
    return {"statusCode": status, "headers": headers, "body": body}
