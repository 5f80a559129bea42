"""Lambda: the queue of Glue's refreshes. Points its tables to what was published."""

from functions.deliveries import sqs_handler
from functions.readers.refreshing import bring
from functions.readers.wiring import glue

handler = sqs_handler(bring, glue)
