"""Translate the events that AWS delivers into values."""

import re
from datetime import datetime
from typing import Any
from urllib.parse import unquote_plus

from lakegate import times
from lakegate.errors import Permanent
from lakegate.job.landing import LandedObject, object_version
from lakegate.job.shared_run import Judged
from lakegate.text import load_json

_CREATED = "Object Created"  # EventBridge's detail type
_MOST_RECORDS = 100  # S3 sends one a message
# Bytes of a key (S3 user guide, "Creating object key names"); other texts are shorter.
_LONGEST = 1024
_LARGEST = 1 << 63
# EMR Serverless API reference, GetJobRun: the id becomes a part of the request's path.
_JOB_RUN_ID = re.compile(r"[0-9a-z]{1,64}")


def landed_objects(body: str) -> list[LandedObject]:
    """Return the landed objects that an event of S3's names; none for S3's own test event.

    It comes as a notification of S3's own, or through EventBridge; a bucket may send both. Raise
    Permanent BAD_EVENT if the text is neither.
    """
    try:
        notification = load_json(body)
        if notification.get("detail-type") == _CREATED:
            # Keys come as they are, and times in whole seconds ("EventBridge event structure").
            told = notification["detail"]
            return [_object(told["bucket"]["name"], told["object"], notification["time"])]
        if notification.get("Event") == "s3:TestEvent":
            return []
        records = notification["Records"]
        if len(records) > _MOST_RECORDS:
            raise ValueError(f"{len(records):,} records")
        return [_landed(record) for record in records]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise _bad("an event of S3's about a new object", body, error) from error


def ended_run(body: str) -> str:
    """Return the id of the job run whose change of state an EventBridge event reports.

    Raise Permanent BAD_EVENT if the text is not such an event.
    """
    try:
        run = load_json(body)["detail"]["jobRunId"]
        if not _JOB_RUN_ID.fullmatch(run):
            raise ValueError("no job run's id")
    except (ValueError, KeyError, TypeError) as error:
        raise _bad("a job run's change of state", body, error) from error
    return str(run)


def judged_files(body: str) -> Judged | None:
    """Return what a shared run says of its files, None for another message.

    Raise Permanent BAD_EVENT for a text that is no message at all.
    """
    try:
        return Judged.from_message(load_json(body))
    except (ValueError, KeyError, TypeError) as error:
        raise _bad("a shared run's verdicts", body, error) from error


def _landed(record: dict[str, Any]) -> LandedObject:
    """Return the object of a notification of S3's own ("Event message structure").

    Keys arrive URL-encoded, with `+` for a space.
    """
    parts = record["s3"]["object"]
    alike = {
        **parts,
        "key": unquote_plus(parts["key"], errors="strict"),
        "etag": parts["eTag"],
        "version-id": parts.get("versionId"),
    }
    return _object(record["s3"]["bucket"]["name"], alike, record["eventTime"])


def _object(bucket: Any, parts: dict[str, Any], at: str) -> LandedObject:
    """Return an object as EventBridge names its parts, which landed in a bucket at that time."""
    etag = _text(parts["etag"]).strip('"')
    return LandedObject(
        bucket=_name(bucket),
        key=_name(parts["key"]),
        version=_name(object_version(parts.get("version-id"), etag)),
        etag=etag,
        size=_size(parts["size"]),
        sequencer=_text(parts.get("sequencer", "")),
        landed_at=times.text(datetime.fromisoformat(at)),
    )


def _text(value: Any) -> str:
    """Return a text that S3 can send: writable characters, and not too many."""
    if not isinstance(value, str) or len(value.encode()) > _LONGEST:
        raise ValueError(f"no text of at most {_LONGEST:,} bytes")
    return value


def _name(value: Any) -> str:
    if not value:
        raise ValueError("a name is empty")
    return _text(value)


def _size(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _LARGEST:
        raise ValueError("no size in bytes")
    return value


def _bad(what: str, body: str, error: Exception) -> Permanent:
    message = f"this message is not {what} ({error!r}): {body[:300]}"
    return Permanent("BAD_EVENT", message)
