"""Lambda: the queue of Snowflake's refreshes. Has its tables read what was published."""

from functions.downstream.announce import bring
from functions.sqs_handler import sqs_handler
from functions.wiring import snowflake

handler = sqs_handler(bring, snowflake)
