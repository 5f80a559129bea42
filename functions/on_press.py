"""Lambda: the queue of actions. Executes the actions of pressed buttons."""

from functions.operations.slack_actions import act
from functions.sqs_handler import sqs_handler
from functions.wiring import adapters

handler = sqs_handler(act, adapters)
