"""Lambda: the queue of S3's events, by either way. Starts an ingestion for each landed object."""

from functions.adapters.all import Adapters
from functions.notifications.missing_rights import telling
from functions.pipeline.start.events import landed_objects
from functions.pipeline.start.intake import take_in
from functions.sqs_handler import sqs_handler
from functions.wiring import adapters_of_batch
from lakegate.errors import Permanent
from lakegate.text import one_line


def upload(adapters: Adapters, body: str) -> None:
    """Start an ingestion for each landed object that an event of S3's names.

    Raises Permanent FOREIGN_BUCKET, and starts none, if an object is in a bucket that the stage
    does not name.
    """
    objects = landed_objects(body)
    known = adapters.settings.landing_buckets
    for landed in objects:
        if landed.bucket not in known:
            message = (
                f"cannot ingest {one_line(landed.uri)}: it is in none of the landing buckets"
                f" {', '.join(known)}"
            )
            raise Permanent("FOREIGN_BUCKET", message)
    with telling(adapters):
        for landed in objects:
            take_in(adapters, landed)


handler = sqs_handler(upload, adapters_of_batch)
