"""Lambda: the queue of Glue's refreshes. Points its tables to what was published."""

from functions.downstream.announce import bring
from functions.sqs_handler import sqs_handler
from functions.wiring import glue

handler = sqs_handler(bring, glue)
