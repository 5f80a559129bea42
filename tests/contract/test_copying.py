"""A landed file is copied within S3, with another footer."""

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from lakegate.errors import Permanent, Transient
from lakegate.landing import LandedObject
from spark_jobs.copying import SMALLEST_PART, USUAL_PART
from spark_jobs.files.footer import file_end
from spark_jobs.storage import Held, Storage, held
from tests.contract.aws import ACCOUNT
from tests.unit.lakegate.test_jobspec import SPEC

_MB = 1 << 20
_SIZES = [0, 100, 5 * _MB - 1, 5 * _MB, 5 * _MB + 1, 12 * _MB, 15 * _MB]
_FOOTER = b"another footer"


@pytest.fixture
def s3() -> Iterator[Any]:
    """Yield S3 in this process, with both buckets; only the landing bucket keeps versions."""
    with mock_aws():
        client = boto3.client("s3", **ACCOUNT)
        for bucket in (SPEC.landed.bucket, SPEC.lake_bucket):
            client.create_bucket(Bucket=bucket)
        kept = {"Status": "Enabled"}
        client.put_bucket_versioning(Bucket=SPEC.landed.bucket, VersioningConfiguration=kept)
        yield client


def landed(s3: Any, pages: bytes, *, keeps_versions: bool = True) -> Storage:
    """Return the storage of a run whose landed file has these pages and a footer."""
    body = pages + file_end(b"a footer")
    bucket = SPEC.landed.bucket
    if not keeps_versions:
        bucket = "plain"
        s3.create_bucket(Bucket=bucket)
    put = s3.put_object(Bucket=bucket, Key="a b/ü.parquet", Body=body)
    etag = put["ETag"].strip('"')
    version = put.get("VersionId", etag)
    found = LandedObject(bucket, "a b/ü.parquet", version, etag, len(body))
    return Storage(replace(SPEC, landed=found), s3, None)


def copy(storage: Storage, key: str, length: int, footer: bytes, part: int = USUAL_PART) -> int:
    """Put the first bytes of the landed file, and another footer, at a key; return the size."""
    return storage.copy(storage.address(key), length, file_end(footer), part)


def put_again(storage: Storage) -> None:
    """Put other bytes under the landed file's key."""
    where = {"Bucket": storage.spec.landed.bucket, "Key": storage.spec.landed.key}
    storage.s3.put_object(**where, Body=b"newer")


def stored(storage: Storage, key: str) -> bytes:
    """Return an object of the lake bucket."""
    found = storage.s3.get_object(Bucket=SPEC.lake_bucket, Key=key)
    return bytes(found["Body"].read())


def left_behind(storage: Storage) -> list[Any]:
    """Return the objects and unfinished uploads in the lake bucket."""
    where = {"Bucket": SPEC.lake_bucket}
    uploads = storage.s3.list_multipart_uploads(**where).get("Uploads", [])
    return uploads + storage.s3.list_objects_v2(**where).get("Contents", [])


@pytest.mark.parametrize("size", _SIZES)
@pytest.mark.parametrize("is_held", [True, False])
def test_only_the_footer_changes(s3: Any, size: int, is_held: bool) -> None:
    """The copy has the landed pages and the new footer, at any size, and the size returned."""
    pages = os.urandom(size)
    storage = landed(s3, pages)
    if is_held:
        storage = held(storage)
        assert isinstance(storage, Held) == (size + len(file_end(_FOOTER)) < SMALLEST_PART)
    copied = copy(storage, "data/x.parquet", size, _FOOTER, 5 * _MB)
    assert stored(storage, "data/x.parquet") == pages + file_end(_FOOTER)
    assert copied == size + len(file_end(_FOOTER))


@pytest.mark.parametrize("size", [100, 12 * _MB])
def test_the_landed_version_is_copied(s3: Any, size: int) -> None:
    """The landed version is copied, also after the key has a newer one or was deleted."""
    pages = os.urandom(size)
    storage = landed(s3, pages)
    put_again(storage)
    copy(storage, "new", size, _FOOTER)
    s3.delete_object(Bucket=storage.spec.landed.bucket, Key=storage.spec.landed.key)
    copy(storage, "deleted", size, _FOOTER)
    assert stored(storage, "new") == stored(storage, "deleted") == pages + file_end(_FOOTER)


def test_a_bucket_without_versions_is_asked_for_the_landed_bytes(s3: Any) -> None:
    """Each request for a copy names the landed object's tag, as a key alone has no version."""
    pages = os.urandom(12 * _MB)
    storage = landed(s3, pages, keeps_versions=False)
    asked = []
    s3.meta.events.register_first(
        "before-call.s3.UploadPartCopy",
        lambda params, **_: asked.append(params["headers"]["x-amz-copy-source-if-match"]),
    )
    copy(storage, "x", len(pages), _FOOTER, part=5 * _MB)
    assert asked == [storage.spec.landed.etag] * 2
    assert stored(storage, "x") == pages + file_end(_FOOTER)


@pytest.mark.parametrize("keeps_versions", [True, False])
def test_only_the_landed_bytes_are_streamed(s3: Any, keeps_versions: bool) -> None:
    """The landed version is streamed, or is gone where a key alone has no version."""
    storage = landed(s3, b"older", keeps_versions=keeps_versions)
    with storage.open() as body:
        assert body.read() == b"older" + file_end(b"a footer")
    put_again(storage)
    if keeps_versions:
        with storage.open() as body:
            assert body.read().startswith(b"older")
    else:
        with pytest.raises(Permanent, match="OBJECT_GONE"), storage.open():
            pass


def test_a_deleted_version_is_gone(s3: Any) -> None:
    """A landed version that was deleted itself is gone, and nothing is left behind."""
    storage = landed(s3, os.urandom(12 * _MB))
    s3.delete_object(**storage.source())
    with pytest.raises(Permanent, match="OBJECT_GONE"):
        copy(storage, "x", 12 * _MB, _FOOTER)
    assert left_behind(storage) == []


@pytest.mark.parametrize("step", ["UploadPartCopy", "UploadPart", "CompleteMultipartUpload"])
def test_a_failure_in_the_middle_leaves_nothing_behind(s3: Any, step: str) -> None:
    """A request that S3 refuses midway ends the upload, and a retry may succeed."""
    pages = os.urandom(12 * _MB)
    storage = landed(s3, pages)
    requests = 0

    def refuse_once(**_: Any) -> None:
        nonlocal requests
        requests += 1
        if requests == (2 if step == "UploadPartCopy" else 1):
            raise ClientError({"Error": {"Code": "InternalError", "Message": "refused"}}, step)

    s3.meta.events.register_first(f"before-call.s3.{step}", refuse_once)
    with pytest.raises(Transient, match="STORAGE_UNAVAILABLE"):
        copy(storage, "x", len(pages), _FOOTER, part=5 * _MB)
    assert left_behind(storage) == []
    copy(storage, "x", len(pages), _FOOTER, part=5 * _MB)
    assert stored(storage, "x") == pages + file_end(_FOOTER)
