"""Events as AWS delivers them, translated into our values."""

import json
from datetime import datetime
from typing import Any
from urllib.parse import unquote_plus

from lakegate import times
from lakegate.errors import Permanent
from lakegate.landing import LandedObject, object_version


def landed_objects(body: str) -> list[LandedObject]:
    """The landed objects that one S3 event notification names; none for S3's own test event.

    Keys arrive URL-encoded, with `+` for a space (S3 user guide, "Event message structure").
    Raises Permanent BAD_EVENT when the text is not such a notification.
    """
    try:
        notification = json.loads(body)
        if notification.get("Event") == "s3:TestEvent":
            return []
        return [_landed(record) for record in notification["Records"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _bad("an S3 event notification", body, error) from error


def ended_run(body: str) -> str:
    """The id of the job run whose change of state an EventBridge event tells.

    Raises Permanent BAD_EVENT when the text is not such an event.
    """
    try:
        run = json.loads(body)["detail"]["jobRunId"]
        if not run or not isinstance(run, str):
            raise ValueError("no job run's id")
    except (ValueError, KeyError, TypeError) as error:
        raise _bad("a job run's change of state", body, error) from error
    return run


def _landed(record: dict[str, Any]) -> LandedObject:
    found = record["s3"]["object"]
    etag = found["eTag"].strip('"')
    return LandedObject(
        bucket=record["s3"]["bucket"]["name"],
        key=unquote_plus(found["key"]),
        version=object_version(found.get("versionId"), etag),
        etag=etag,
        size=int(found["size"]),
        sequencer=found.get("sequencer", ""),
        landed_at=times.text(datetime.fromisoformat(record["eventTime"])),
    )


def _bad(what: str, body: str, error: Exception) -> Permanent:
    message = f"this message is not {what} ({error!r}): {body[:300]}"
    return Permanent("BAD_EVENT", message)
