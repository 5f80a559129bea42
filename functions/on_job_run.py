"""Lambda: the queue of EMR Serverless's state changes. Publishes, or tells people why not."""

from functions.deliveries import job_run, sqs_handler
from functions.wiring import world

handler = sqs_handler(job_run, world)
