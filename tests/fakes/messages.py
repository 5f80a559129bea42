"""Queue messages built from values; tests/events has examples of the real ones."""

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from lakegate.job.landing import LandedObject


def upload(*landed: LandedObject) -> str:
    """Return the body of S3's notification that objects landed."""
    return json.dumps({"Records": [_record(each) for each in landed]})


def state_change(run: str) -> str:
    """Return the body of EMR Serverless's event that a job run changed its state."""
    return json.dumps({"detail": {"jobRunId": run, "state": "SUCCESS"}})


def sqs_batch(bodies: Iterable[str]) -> dict[str, Any]:
    """Return messages `m0`, `m1`, … as SQS passes them to a Lambda."""
    return {
        "Records": [
            {"messageId": f"m{n}", "receiptHandle": f"r{n}", "body": body, "attributes": {}}
            for n, body in enumerate(bodies)
        ]
    }


def _record(landed: LandedObject) -> dict[str, Any]:
    return {
        "eventTime": landed.landed_at or "2026-03-01T12:00:00.000Z",
        "s3": {
            "bucket": {"name": landed.bucket},
            "object": {
                "key": quote(landed.key, safe="/").replace("%20", "+"),
                "size": landed.size,
                "eTag": landed.etag,
                "versionId": landed.version,
                "sequencer": landed.sequencer,
            },
        },
    }
