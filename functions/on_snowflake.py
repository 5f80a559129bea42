"""Lambda: the queue of Snowflake's refreshes. Has its tables read what was published."""

from functions.deliveries import sqs_handler
from functions.refreshing import bring
from functions.wiring_warehouses import snowflake

handler = sqs_handler(bring, snowflake)
