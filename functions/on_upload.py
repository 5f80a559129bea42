"""Lambda: the queue of S3's event notifications. Takes in each landed object."""

from functions.sqs_handler import sqs_handler, upload
from functions.wiring import adapters

handler = sqs_handler(upload, adapters)
