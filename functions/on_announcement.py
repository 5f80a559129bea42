"""Lambda: the queue of announcements. Tells readers what became of an ingestion.

Outside the deployment's network, for EventBridge has no door into it.
"""

from functions.downstream.announce import announce
from functions.sqs_handler import sqs_handler
from functions.wiring import readers

handler = sqs_handler(announce, readers)
