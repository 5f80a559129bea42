"""New objects are put as a whole or not at all; the landed version is streamed."""

import os
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lakegate.errors import Permanent, Transient
from lakegate.job.landing import LandedObject
from spark_jobs.lake.storage import PART, Held, Storage, held
from tests.unit.lakegate.test_jobspec import SPEC

_MB = 1 << 20
_SIZES = [0, 1, PART - 1, PART, PART + 1, 3 * PART + 7]
_KEY = "data/ü 1.parquet"


def landed(s3: Any, body: bytes, *, keeps_versions: bool = True) -> Storage:
    """Return the storage of a run whose landed file has these bytes."""
    bucket = SPEC.landed.bucket
    if not keeps_versions:
        bucket = "plain"
        s3.create_bucket(Bucket=bucket)
    put = s3.put_object(Bucket=bucket, Key="a b/ü.parquet", Body=body)
    etag = put["ETag"].strip('"')
    version = put.get("VersionId", etag)
    found = LandedObject(bucket, "a b/ü.parquet", version, etag, len(body))
    return Storage(replace(SPEC, landed=found), s3, None)


def put_again(storage: Storage) -> None:
    """Put other bytes under the landed file's key."""
    where = {"Bucket": storage.spec.landed.bucket, "Key": storage.spec.landed.key}
    storage.s3.put_object(**where, Body=b"newer")


def stored(s3: Any) -> bytes:
    """Return the new object of the lake bucket."""
    return bytes(s3.get_object(Bucket=SPEC.lake_bucket, Key=_KEY)["Body"].read())


def left_behind(s3: Any) -> list[Any]:
    """Return the objects and unfinished uploads in the lake bucket."""
    where = {"Bucket": SPEC.lake_bucket}
    uploads = s3.list_multipart_uploads(**where).get("Uploads", [])
    return uploads + s3.list_objects_v2(**where).get("Contents", [])


def write(storage: Storage, body: bytes, step: int = 5 * _MB + 11) -> int:
    """Write a new object, some bytes at once; return its size as the stream tells it."""
    with storage.new_object(storage.address(_KEY)) as stream:
        for start in range(0, len(body), step):
            stream.write(body[start : start + step])
        return stream.tell()


@pytest.mark.parametrize("size", _SIZES)
def test_a_new_object_has_all_bytes(job_s3: Any, size: int) -> None:
    """The object has what was written, in order, at any size."""
    body = os.urandom(size)
    assert write(landed(job_s3, b"x"), body) == size
    assert stored(job_s3) == body
    assert len(left_behind(job_s3)) == 1


def test_it_is_not_there_before_its_end(job_s3: Any) -> None:
    """Nobody sees a part of an object, and an error in the block leaves nothing behind."""
    storage = landed(job_s3, b"x")
    seen: list[Any] = []

    def fail_midway() -> None:
        with storage.new_object(storage.address(_KEY)) as stream:
            stream.write(os.urandom(2 * PART))
            seen.append(job_s3.list_objects_v2(Bucket=SPEC.lake_bucket).get("Contents"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_midway()
    assert seen == [None]
    assert left_behind(job_s3) == []


@pytest.mark.parametrize(
    "step", ["PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"]
)
def test_a_failure_in_the_middle_leaves_nothing_behind(job_s3: Any, step: str) -> None:
    """A request that S3 refuses midway ends the upload, and a retry may succeed."""
    storage, body = landed(job_s3, b"x"), os.urandom(100 if step == "PutObject" else 3 * PART)
    requests = 0

    def refuse_once(**_: Any) -> None:
        nonlocal requests
        requests += 1
        if requests == (2 if step == "UploadPart" else 1):
            raise ClientError({"Error": {"Code": "InternalError", "Message": "refused"}}, step)

    job_s3.meta.events.register_first(f"before-call.s3.{step}", refuse_once)
    with pytest.raises(Transient, match="STORAGE_UNAVAILABLE"):
        write(storage, body)
    assert left_behind(job_s3) == []
    write(storage, body)
    assert stored(job_s3) == body


@pytest.mark.parametrize("size", [1, 5 * _MB - 1, 5 * _MB])
def test_small_files_are_held(job_s3: Any, size: int) -> None:
    """A small file's bytes are requested once, those of a larger one by parts."""
    storage = held(landed(job_s3, bytes(size)))
    assert isinstance(storage, Held) == (size < 5 * _MB)
    assert storage.range(0, 1) == b"\0"


@pytest.mark.parametrize("keeps_versions", [True, False])
def test_only_the_landed_bytes_are_streamed(job_s3: Any, keeps_versions: bool) -> None:
    """The landed version is streamed, or is gone where a key alone has no version."""
    storage = landed(job_s3, b"older", keeps_versions=keeps_versions)
    with storage.open() as body:
        assert body.read() == b"older"
    put_again(storage)
    if keeps_versions:
        with storage.open() as body:
            assert body.read() == b"older"
    else:
        with pytest.raises(Permanent, match="OBJECT_GONE"), storage.open():
            pass


@pytest.mark.parametrize("keeps_versions", [True, False])
def test_parts_are_of_the_landed_bytes(job_s3: Any, keeps_versions: bool) -> None:
    """A part of a file that was replaced is of the landed version, or is gone with it."""
    storage = landed(job_s3, b"older", keeps_versions=keeps_versions)
    assert (storage.range(0, 2), storage.range(1, 2), storage.range(3, 9)) == (b"ol", b"ld", b"er")
    put_again(storage)
    if keeps_versions:
        assert storage.range(1, 2) == b"ld"
    else:
        with pytest.raises(Permanent, match="OBJECT_GONE"):
            storage.range(1, 2)
