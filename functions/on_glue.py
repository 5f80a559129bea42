"""Lambda: the queue of Glue's refreshes. Points its tables to what was published."""

from functions.deliveries import sqs_handler
from functions.refreshing import bring
from functions.wiring_warehouses import glue

handler = sqs_handler(bring, glue)
