"""Lambda: the queue of Snowflake's refreshes. Has its tables read what was published."""

from functions.deliveries import sqs_handler
from functions.readers.refreshing import bring
from functions.readers.wiring import snowflake

handler = sqs_handler(bring, snowflake)
