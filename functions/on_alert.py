"""Lambda: the queue of alerts. Shows people what they are to be told.

The only function outside the deployment's network, for Slack is on the internet.
"""

from functions.alerts import tell
from functions.deliveries import sqs_handler
from functions.wiring import alerts

handler = sqs_handler(tell, alerts)
