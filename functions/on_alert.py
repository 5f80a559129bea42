"""Lambda: the queue of alerts. Shows people what they are to be told.

Outside the deployment's network, for Slack is on the internet.
"""

from functions.notifications.notify import tell
from functions.sqs_handler import sqs_handler
from functions.wiring import alert_channels

handler = sqs_handler(tell, alert_channels)
