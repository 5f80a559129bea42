"""Lambda: the queue of alerts. Shows people what they are to be told.

Outside the deployment's network, for Slack is on the internet.
"""

from functions.deliveries import sqs_handler
from functions.people.telling import tell
from functions.people.wiring import desk

handler = sqs_handler(tell, desk)
