"""Lambda: the queue of S3's event notifications. Starts an ingestion for each landed object."""

from functions.adapters.all import Adapters
from functions.pipeline.events import landed_objects
from functions.pipeline.intake import take_in
from functions.sqs_handler import sqs_handler
from functions.wiring import adapters
from lakegate.errors import Permanent
from lakegate.text import one_line


def upload(adapters: Adapters, body: str) -> None:
    """Take in each landed object that an S3 event notification names.

    Raises Permanent FOREIGN_BUCKET, and takes in none, where one landed elsewhere.
    """
    found = landed_objects(body)
    for landed in found:
        if landed.bucket != adapters.settings.landing_bucket:
            message = f"only what lands in {adapters.settings.landing_bucket} is taken in"
            raise Permanent("FOREIGN_BUCKET", f"{message}, and not {one_line(landed.uri)}")
    for landed in found:
        take_in(adapters, landed)


handler = sqs_handler(upload, adapters)
