"""Read the landing bucket, with all versions of its keys, and bring files into it."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO

from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from functions.adapters.s3 import Missing, Overwritten, body_of, translated
from lakegate import times
from lakegate.errors import LakegateError
from lakegate.job.landing import LandedObject, object_version
from lakegate.refusals import decrypted

_LONGEST_MANIFEST = 64 << 10
_PIECE = 1 << 20  # bytes
_PAGE = 1000  # the most that S3 lists at once
_NOW = "9999"  # as a time
_LARGEST_AT_ONCE = (1 << 30) - 1  # bytes
_LARGEST_PUT = 5 << 30  # bytes that S3 takes at once
_COPYING = TransferConfig(multipart_threshold=1 << 30, multipart_chunksize=1 << 28)
# The metadata field that identifies the source of a copy, or what a mended file is made of.
_MARK = "lakegate-source"


class LostPosition(LakegateError):
    """S3 cannot continue a listing there."""


@dataclass(frozen=True)
class Source:
    """An object in another bucket as it was listed; `size` is in bytes."""

    bucket: str
    key: str
    etag: str
    size: int

    @property
    def uri(self) -> str:
        """Return the object's address: `s3://bucket/key`."""
        return f"s3://{self.bucket}/{self.key}"

    @property
    def mark(self) -> str:
        """Return what identifies this state of the object: its copies carry it."""
        identity = "\0".join((self.bucket, self.key, self.etag))
        return hashlib.sha256(identity.encode()).hexdigest()


def require_put(name: str, size: int, remedy: str = "") -> None:
    """Raise LakegateError TOO_LARGE for a file of more bytes than S3 takes at once."""
    if size > _LARGEST_PUT:
        message = f"{name} has more than the {_LARGEST_PUT:,} bytes that S3 takes at once"
        raise LakegateError("TOO_LARGE", message + remedy)


class Landing:
    """The landing bucket, and the buckets of others in which files land as well."""

    def __init__(self, client: Any, bucket: str, *others: str) -> None:
        """Use boto3's `s3` client; Lakegate itself puts new keys into `bucket` alone."""
        self._client = client
        self.bucket = bucket
        self._buckets = (bucket, *others)

    def landed(self) -> Iterator[LandedObject]:
        """Yield every version of every key that landed; delete markers are not objects."""
        position = None
        while position != "":
            page, position = self.page(position or "")
            yield from page

    def page(self, position: str, most: int = _PAGE) -> tuple[list[LandedObject], str]:
        """Return some landed versions after a position, and the position after them.

        "" is the beginning and the end; versions are ordered by key, bucket by bucket. Raises
        LostPosition.
        """
        given = json.loads(position) if position else ("", "")
        key, version, bucket = (*given, self.bucket)[:3]
        if bucket not in self._buckets:
            raise LostPosition("LOST_POSITION", f"{bucket} is no landing bucket any more")
        after = {"KeyMarker": key, "VersionIdMarker": version} if key else {}
        with translated(bucket):
            try:
                page = self._client.list_object_versions(Bucket=bucket, MaxKeys=most, **after)
            except ClientError as error:  # for example since the position's version was deleted
                if position and error.response["Error"]["Code"] == "InvalidArgument":
                    why = f"S3 does not list from there: {error}"
                    raise LostPosition("LOST_POSITION", why) from error
                raise
        landed = [_listed(bucket, entry) for entry in page.get("Versions", [])]
        if page["IsTruncated"]:
            return landed, json.dumps([page["NextKeyMarker"], page["NextVersionIdMarker"], bucket])
        left = self._buckets[self._buckets.index(bucket) + 1 :]
        return landed, json.dumps(["", "", left[0]]) if left else ""

    def newest(self, prefix: str, at: str = _NOW, bucket: str = "") -> dict[str, LandedObject]:
        """Return the newest version of every key with this prefix, by key, without deleted keys.

        `bucket` is another one than Lakegate's own.
        `at` (ISO 8601, UTC) asks for the state at that time by S3's clock, which has whole seconds
        and dates a multipart upload by its start. Changes within that second count, so an object
        uploaded before is always found. In the worst case the result is the version that replaced
        it within that second; then a later file that names it is held as a likely duplicate, and
        its owner is alerted.
        """
        there: dict[str, dict[str, Any]] = {}
        gone: dict[str, dict[str, Any]] = {}
        with translated(f"{prefix}*"):
            pages = self._client.get_paginator("list_object_versions").paginate(
                Bucket=bucket or self.bucket, Prefix=prefix
            )
            for page in pages:
                for newest, kind in ((there, "Versions"), (gone, "DeleteMarkers")):
                    for entry in page.get(kind, []):  # of a key the newest first
                        if times.second(times.text(entry["LastModified"])) <= times.second(at):
                            newest.setdefault(entry["Key"], entry)
        return {
            key: _listed(bucket or self.bucket, entry)
            for key, entry in there.items()
            if key not in gone or _rank(gone[key]) <= _rank(entry)
        }

    def manifest(self, landed: LandedObject) -> tuple[bytes, str]:
        """Return the text of a batch's manifest, and when it landed by S3's clock.

        An event has the time when the upload was complete, which differs from a listing's. Raises
        Missing where that version is gone, Permanent TOO_LARGE or KEY_REFUSED.
        """
        with translated(landed.uri), decrypted(landed.uri):
            answer = self._client.get_object(Bucket=landed.bucket, **_version(landed))
            body = body_of(answer, landed.key, _LONGEST_MANIFEST)
            return body, times.text(answer["LastModified"])

    def download(self, landed: LandedObject, file: Path) -> None:
        """Write exactly what landed to a file, piece by piece.

        Raises Missing or Overwritten where that version is gone, Permanent KEY_REFUSED, OSError
        where the file cannot be written.
        """
        with translated(landed.uri), decrypted(landed.uri), file.open("wb") as copy:
            answer = self._client.get_object(
                Bucket=landed.bucket, IfMatch=f'"{landed.etag}"', **_version(landed)
            )
            shutil.copyfileobj(answer["Body"], copy, _PIECE)

    def put(self, key: str, body: bytes | BinaryIO) -> LandedObject:
        """Put bytes or a file as an uploader does; return the landed object."""
        size = len(body) if isinstance(body, bytes) else body.seek(0, SEEK_END)
        if not isinstance(body, bytes):
            body.seek(0)
        with translated(key):
            answer = self._client.put_object(Bucket=self.bucket, Key=key, Body=body)
        return _landed_object(self.bucket, key, answer, size)

    def put_over(self, landed: LandedObject, file: Path, mark: str) -> LandedObject:
        """Put a file, with a mark, as the next version of a landed object; return it as landed.

        Raises Overwritten if the key has not that version any more, Missing if it was deleted, and
        LakegateError TOO_LARGE.
        """
        require_put(landed.key, file.stat().st_size)
        if self.brought(landed.key, landed.bucket)[0].version != landed.version:
            raise Overwritten("OVERWRITTEN", f"{landed.key} was overwritten meanwhile")
        with translated(landed.uri), file.open("rb") as body:
            answer = self._client.put_object(
                Bucket=landed.bucket,
                Key=landed.key,
                Body=body,
                Metadata={_MARK: mark},
                IfMatch=f'"{landed.etag}"',
            )
        return _landed_object(landed.bucket, landed.key, answer, file.stat().st_size)

    def sources(self, bucket: str, prefix: str) -> Iterator[Source]:
        """Yield the objects in another bucket whose keys have this prefix, in order of their keys.

        Folder markers are no objects.
        """
        with translated(f"s3://{bucket}/{prefix}*"):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=bucket, Prefix=prefix
            )
            for page in pages:
                for entry in page.get("Contents", []):
                    if not entry["Key"].endswith("/"):
                        etag = entry["ETag"].strip('"')
                        yield Source(bucket, entry["Key"], etag, entry["Size"])

    def bring(self, source: Source, key: str, over: LandedObject | None = None) -> LandedObject:
        """Copy an object from another bucket, within S3; return the landed object.

        The copy carries the source's mark. Raises Overwritten if the source is not as listed any
        more, or if the key has not what `over` is, None for nothing; and Missing.
        """
        self._require(key, over)  # S3 looks once more, at both, as it copies
        told: dict[str, Any] = {
            "CopySourceIfMatch": f'"{source.etag}"',
            "Metadata": {_MARK: source.mark},
            "MetadataDirective": "REPLACE",
            "TaggingDirective": "REPLACE",  # to read tags takes another right
        }
        place = {"Bucket": source.bucket, "Key": source.key}
        with translated(source.uri):
            self._client.head_object(**place, IfMatch=told["CopySourceIfMatch"])
            if source.size > _LARGEST_AT_ONCE:  # by parts, which S3 puts together in any case
                self._client.copy(place, self.bucket, key, ExtraArgs=told, Config=_COPYING)
            else:
                only = {"IfMatch": f'"{over.etag}"'} if over else {"IfNoneMatch": "*"}
                self._client.copy_object(
                    Bucket=self.bucket, Key=key, CopySource=place, **told, **only
                )
        return self.brought(key)[0]

    def _require(self, key: str, over: LandedObject | None) -> None:
        """Raise Overwritten if a key has not what `over` is."""
        try:
            there = self.brought(key)[0].etag
        except Missing:
            there = ""
        if there != (over.etag if over else ""):
            raise Overwritten("OVERWRITTEN", f"{key} was overwritten meanwhile")

    def brought(self, key: str, bucket: str = "") -> tuple[LandedObject, str]:
        """Return a key's newest version and its mark, "" if it was put without.

        `bucket` is another one than Lakegate's own. Raises Missing.
        """
        with translated(key):
            answer = self._client.head_object(Bucket=bucket or self.bucket, Key=key)
        landed = _landed_object(bucket or self.bucket, key, answer, answer["ContentLength"])
        return landed, answer["Metadata"].get(_MARK, "")


def _listed(bucket: str, entry: dict[str, Any]) -> LandedObject:
    landed = _landed_object(bucket, entry["Key"], entry, entry["Size"])
    return replace(landed, landed_at=times.text(entry["LastModified"]))


def _landed_object(bucket: str, key: str, answer: dict[str, Any], size: int) -> LandedObject:
    """Return the landed object of a key that one of S3's answers is about."""
    etag = answer["ETag"].strip('"')
    version = object_version(answer.get("VersionId"), etag)
    return LandedObject(bucket, key, version, etag, size)


def _version(landed: LandedObject) -> dict[str, str]:
    """Return how S3 is asked for a version of a key, if the bucket has versions."""
    versioned = {} if landed.version == landed.etag else {"VersionId": landed.version}
    return {"Key": landed.key, **versioned}


def _rank(entry: dict[str, Any]) -> tuple[bool, datetime]:
    """Return the sort key of a version among those of its key; the newest is the largest."""
    return entry["IsLatest"], entry["LastModified"].replace(microsecond=0)
