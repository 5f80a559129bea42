"""Values from AWS's events, and the refusal of anything else."""

import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from functions.pipeline.start.events import ended_run, landed_objects
from lakegate.errors import Permanent
from lakegate.job.landing import LandedObject, ingestion_id
from tests.fakes.messages import upload

EVENTS = Path(__file__).parents[2] / "events"
PUT = LandedObject(
    bucket="lakegate-dev-landing-123456789012",
    key="nyc/flights/2013-01-01.parquet",
    version="096fKKXTRTtl3on89fVO.nfljtsv6qko",
    etag="d41d8cd98f00b204e9800998ecf8427e",
    size=20874,
    sequencer="0065E1B2C3D4E5F607",
    landed_at="2026-03-01T12:34:56.789+00:00",
)


def body(event: str, message: int = 0) -> str:
    """Return the body of one message of an event document."""
    document = json.loads((EVENTS / f"{event}.json").read_text())
    return str(document["Records"][message]["body"])


def test_a_put_names_what_landed() -> None:
    """S3's notification gives bucket, key, version, etag, size, order and time."""
    assert landed_objects(body("s3_put")) == [PUT]


def test_a_key_is_decoded() -> None:
    """A key with spaces, plus signs, percent signs and umlauts arrives as the uploader named it."""
    (landed,) = landed_objects(body("s3_put_encoded_key"))
    assert landed.key == "nyc/flights/Flüge aus New York 2013+01 (100%).parquet"


def test_a_multipart_upload_is_an_upload() -> None:
    """A large file, uploaded in parts, is read like any other."""
    (landed,) = landed_objects(body("s3_multipart_upload"))
    assert landed.size == 104857600


def test_without_versions_the_etag_is_the_version() -> None:
    """In a bucket without versions, the content's etag is the version."""
    (landed,) = landed_objects(body("s3_put_unversioned"))
    assert landed.version == landed.etag == PUT.etag


@pytest.mark.parametrize("version", [None, "null"])
def test_a_null_version_is_no_version(version: str | None) -> None:
    """For the version `null` of a bucket that stopped keeping versions, the etag is the version."""
    notification = json.loads(body("s3_put"))
    notification["Records"][0]["s3"]["object"]["versionId"] = version
    (landed,) = landed_objects(json.dumps(notification))
    assert landed.version == PUT.etag


def test_the_test_event_names_nothing() -> None:
    """The message that S3 sends when notifications are set up has no effect."""
    assert landed_objects(body("s3_test_event")) == []


def test_times_are_in_utc() -> None:
    """Times compare as text, in UTC."""
    text = body("s3_put").replace("2026-03-01T12:34:56.789Z", "2026-03-01T14:34:56.789+02:00")
    assert landed_objects(text) == [PUT]


@given(st.lists(st.text(min_size=1, max_size=200), max_size=3))
@example([os.urandom(8).hex() * 64, "é" * 512, "\U0001f600" * 256])
@example(["../../etc/passwd", "/", "a//b", ".", "%2F%00", "\0", "a\n\x1b[31m\u202e.csv"])
def test_every_key_is_decoded_as_it_was(keys: list[str]) -> None:
    """Any keys, encoded as S3 encodes them, come back the same and in order."""
    landed = [LandedObject("landing", key, "v1", "e1", 1) for key in keys]
    assert [found.key for found in landed_objects(upload(*landed))] == keys


@pytest.mark.parametrize("event", ["emr_success", "emr_failed"])
def test_a_state_change_names_its_run(event: str) -> None:
    """EMR's event gives the job run's id; all else is read from EMR itself."""
    assert ended_run(body(event)) == "00f1cbn5g4bb0c01"


BROKEN = [
    "",
    "not JSON",
    "null",
    "1",
    '"text"',
    "[]",
    "{}",
    '{"Records": 1}',
    '{"Records": [null]}',
    '{"Records": [{"s3": {}}]}',
    '{"detail": null}',
    '{"detail": {}}',
    '{"detail": {"jobRunId": null}}',
    '{"detail": {"jobRunId": ["x"]}}',
    '{"detail": {"jobRunId": ""}}',
    '{"detail": {"jobRunId": ".."}}',
    '{"detail": {"jobRunId": "../../00other"}}',
    '{"detail": {"jobRunId": "00run?x=1"}}',
    f'{{"detail": {{"jobRunId": "{"0" * 65}"}}}}',
    '{"Records": [' + ", ".join(["{}"] * 101) + "]}",
    '{"Records": [' * 100_000,
    "9" * 5000,
]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        *[(read, text) for read in (landed_objects, ended_run) for text in BROKEN],
        (landed_objects, body("emr_success")),
        (ended_run, body("s3_put")),
    ],
)
def test_what_is_another_message_is_refused(read: Callable[[str], object], text: str) -> None:
    """A message that is no S3 notification, or no job run's change of state, is shown."""
    with pytest.raises(Permanent, match="BAD_EVENT") as refusal:
        read(text)
    assert text[:300] in refusal.value.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("size", size) for size in ("many", None, "7", 1.5, True, -1, 1 << 63, math.inf)],
        *[("key", key) for key in (None, "", ["a"], "%ff", "%C3", "\ud800", "a" * 1025)],
        ("key", "%F0%9F%98%80" * 257),
        *[(name, value) for name in ("eTag", "versionId") for value in (7, ["x"], "x" * 1025)],
        ("eTag", None),
        ("versionId", "\udfff"),
        *[("sequencer", value) for value in (7, None, "0" * 1025)],
        *[("time", at) for at in ("", "soon", "0001-01-01T00:00:00+23:59", 7, None)],
    ],
)
def test_half_a_notification_is_refused(name: str, value: object) -> None:
    """A notification with one invalid record, or a time out of range, is refused as a whole."""
    notification = json.loads(body("s3_put"))
    (record,) = notification["Records"]
    if name == "time":
        record["eventTime"] = value
    else:
        record["s3"]["object"][name] = value
    with pytest.raises(Permanent, match="BAD_EVENT"):
        landed_objects(json.dumps(notification))


def through_event_bridge(landed: LandedObject, **changes: object) -> str:
    """Return EventBridge's event of an object, as the S3 user guide shows it."""
    found = {
        "key": landed.key,
        "size": landed.size,
        "etag": landed.etag,
        "version-id": landed.version,
        "sequencer": landed.sequencer,
    }
    found |= {name.replace("_", "-"): value for name, value in changes.items()}
    event = {
        "version": "0",
        "id": "17793124-05d4-b198-2fde-7ededc63b103",
        "detail-type": "Object Created",
        "source": "aws.s3",
        "account": "123456789012",
        "time": "2026-03-01T12:34:56Z",
        "region": "ca-central-1",
        "resources": [f"arn:aws:s3:::{landed.bucket}"],
        "detail": {
            "version": "0",
            "bucket": {"name": landed.bucket},
            "object": {name: value for name, value in found.items() if value is not None},
            "request-id": "N4N7GDK58NMKJ12R",
            "requester": "123456789012",
            "source-ip-address": "1.2.3.4",
            "reason": "PutObject",
        },
    }
    return json.dumps(event)


def test_both_ways_name_one_landed_object() -> None:
    """EventBridge's event gives the same object, so that both begin one ingestion."""
    (landed,) = landed_objects(through_event_bridge(PUT))
    assert landed == replace(PUT, landed_at="2026-03-01T12:34:56.000+00:00")
    assert ingestion_id(landed) == ingestion_id(PUT)


@pytest.mark.parametrize("key", ["a+b.csv", "a%20b.csv", "Flüge (100%).csv", "a b.csv"])
def test_a_key_of_event_bridges_is_not_decoded(key: str) -> None:
    """EventBridge sends keys as they are: `+` and `%20` are characters of the name."""
    (landed,) = landed_objects(through_event_bridge(replace(PUT, key=key)))
    assert landed.key == key


@pytest.mark.parametrize("version", [None, "null"])
def test_without_versions_event_bridges_etag_is_the_version(version: str | None) -> None:
    """A bucket without versions gives the etag by this way as well."""
    (landed,) = landed_objects(through_event_bridge(PUT, version_id=version))
    assert landed.version == PUT.etag


@pytest.mark.parametrize(
    "changes", [{"size": None}, {"size": "5"}, {"etag": None}, {"key": ""}, {"key": 5}]
)
def test_an_event_without_what_the_gate_relies_on_is_refused(changes: dict[str, object]) -> None:
    """What lacks size, etag or key is no event of S3's about a new object."""
    with pytest.raises(Permanent, match="BAD_EVENT"):
        landed_objects(through_event_bridge(PUT, **changes))
