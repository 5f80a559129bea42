"""Lambda: the queue of actions. Carries out what people pressed a button for."""

from functions.operations.slack_actions import act
from functions.sqs_handler import sqs_handler
from functions.wiring import adapters

handler = sqs_handler(act, adapters)
