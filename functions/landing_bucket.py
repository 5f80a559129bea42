"""The landing bucket on S3: what landed."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from functions.storage import body_of, translated
from lakegate import times
from lakegate.landing import LandedObject, object_version

_LONGEST_MANIFEST = 64 << 10
_NOW = "9999"  # as a time


class Landing:
    """The landing bucket."""

    def __init__(self, client: Any, bucket: str) -> None:
        """`client` is boto3's `s3` client."""
        self._client = client
        self.bucket = bucket

    def landed(self) -> Iterator[LandedObject]:
        """Every version of every key that landed; delete markers are not objects."""
        with translated(self.bucket):
            pages = self._client.get_paginator("list_object_versions").paginate(Bucket=self.bucket)
            for page in pages:
                for found in page.get("Versions", []):
                    yield self._landed(found)

    def newest(self, prefix: str, at: str = _NOW) -> dict[str, LandedObject]:
        """The newest version of every key that begins so, by key; deleted ones are not there.

        `at` (ISO 8601, UTC) asks for what was there at that time by S3's clock, which tells whole
        seconds, and of a multipart upload when it began. What was put or deleted in that very
        second counts, so whatever was uploaded in order is found. At worst it is what followed at
        once in its place: then whoever names that next is held for a duplicate, and people know.
        """
        there: dict[str, dict[str, Any]] = {}
        gone: dict[str, dict[str, Any]] = {}
        with translated(f"{prefix}*"):
            pages = self._client.get_paginator("list_object_versions").paginate(
                Bucket=self.bucket, Prefix=prefix
            )
            for page in pages:
                for newest, kind in ((there, "Versions"), (gone, "DeleteMarkers")):
                    for found in page.get(kind, []):  # of a key the newest first
                        if times.second(times.text(found["LastModified"])) <= times.second(at):
                            newest.setdefault(found["Key"], found)
        return {
            key: self._landed(found)
            for key, found in there.items()
            if key not in gone or _rank(gone[key]) <= _rank(found)
        }

    def manifest(self, landed: LandedObject) -> tuple[bytes, str]:
        """The text of a batch's manifest as it landed, and when that was by S3's clock.

        An event tells when S3 was done with the upload, so its time is not that of a listing.
        Raises Missing where that version is gone, Permanent TOO_LARGE.
        """
        version = {} if landed.version == landed.etag else {"VersionId": landed.version}
        with translated(landed.uri):
            found = self._client.get_object(Bucket=self.bucket, Key=landed.key, **version)
            body = body_of(found, landed.key, _LONGEST_MANIFEST)
            return body, times.text(found["LastModified"])

    def put(self, key: str, body: bytes) -> LandedObject:
        """Put an object as an uploader would; returns what landed."""
        with translated(key):
            answer = self._client.put_object(Bucket=self.bucket, Key=key, Body=body)
        etag = answer["ETag"].strip('"')
        version = object_version(answer.get("VersionId"), etag)
        return LandedObject(self.bucket, key, version, etag, len(body))

    def _landed(self, found: dict[str, Any]) -> LandedObject:
        etag = found["ETag"].strip('"')
        return LandedObject(
            bucket=self.bucket,
            key=found["Key"],
            version=object_version(found["VersionId"], etag),
            etag=etag,
            size=found["Size"],
            landed_at=times.text(found["LastModified"]),
        )


def _rank(found: dict[str, Any]) -> tuple[bool, datetime]:
    """How new an entry of a listing of versions is among those of its key."""
    return found["IsLatest"], found["LastModified"].replace(microsecond=0)
