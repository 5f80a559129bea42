"""Lambda: the queue of actions. Carries out what people pressed a button for."""

from functions.deliveries import sqs_handler
from functions.people.acting import act
from functions.wiring import world

handler = sqs_handler(act, world)
