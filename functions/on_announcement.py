"""Lambda: the queue of announcements. Tells readers what became of an ingestion.

Outside the deployment's network, for EventBridge has no door into it.
"""

from functions.deliveries import sqs_handler
from functions.readers.announcing import announce
from functions.wiring import readers

handler = sqs_handler(announce, readers)
