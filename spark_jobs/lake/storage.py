"""Access S3 and the token secret for one run; Spark itself reads and writes the tables."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, cast

from botocore.exceptions import BotoCoreError, ClientError

from lakegate.audit.drift import Baselines, baselines_key
from lakegate.audit.report import AuditReport
from lakegate.contract.model import Contract, parse
from lakegate.errors import Permanent, Transient
from lakegate.job.change import Change
from lakegate.job.jobspec import JobSpec
from lakegate.refusals import decrypted, unavailable
from spark_jobs.files.text.sniff import is_gzip
from spark_jobs.lake.aws import client

_GONE = ("NoSuchKey", "NoSuchVersion", "404", "PreconditionFailed", "412")
_LONGEST = 1024 * 1024
_SMALL = 5 << 20  # bytes of a file that one request reads
PART = 16 << 20  # bytes of a new object that are in memory, and that one request puts
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9=-]*([./][A-Za-z0-9][A-Za-z0-9_=-]*)*")


# Extensions by which Hadoop decompresses a file.
_PACKED = ("gz", "deflate", "bz2", "lz4", "snappy", "zst")


class Replaced(Transient):
    """A newer version of the key arrived while the landed one was read."""


@dataclass(frozen=True)
class Storage:
    """The buckets of one run; `s3` and `secrets` are boto3 clients."""

    spec: JobSpec
    s3: Any
    secrets: Any

    @classmethod
    def connect(cls, spec: JobSpec) -> "Storage":
        """Return a storage with clients of the run's region."""
        return cls(spec, client("s3"), client("secretsmanager"))

    @classmethod
    def objects_only(cls, spec: JobSpec) -> "Storage":
        """Return a storage that cannot read the token: it is made in half the time."""
        return Storage(spec, client("s3"), None)

    def __reduce__(self) -> tuple[Any, ...]:
        """Give Spark's tasks the same buckets, by clients of their own."""
        return Storage.objects_only, (self.spec,)

    def nessie_token(self) -> str:
        """Return the job's bearer token for Nessie."""
        with translated(self.spec.token_secret):
            answer = self.secrets.get_secret_value(SecretId=self.spec.token_secret)
            return str(answer["SecretString"])

    def contract(self) -> Contract:
        """Return the contract in the version with which the ingestion began."""
        spec = self.spec
        version = {"VersionId": spec.contract_version} if spec.contract_version else {}
        body = self._object(spec.contract_key, **version)
        return parse(body.decode(), spec.contract_key, spec.limits)

    @property
    def size(self) -> int:
        """Return the size of the landed version in bytes."""
        return self.spec.landed.size

    def change(self) -> Change:
        """Return the change that the run makes. Raises Permanent."""
        spec = self.spec
        with translated(spec.landed.uri):
            answer = self.s3.get_object(Bucket=spec.landed.bucket, Key=spec.landed.key)
            return Change.from_json(answer["Body"].read(), spec.landed.key)

    def range(self, start: int, length: int) -> bytes:
        """Return `length` bytes of the landed version from `start`, fewer where it ends."""
        if not self.size:
            return b""  # no range can be had of nothing
        landed = self.spec.landed
        same = {"IfMatch": landed.etag} if landed.version == landed.etag else {}  # no versions
        which = {**self.source(), **same, "Range": f"bytes={start}-{start + length - 1}"}
        with _landed(landed.uri):
            return bytes(self.s3.get_object(**which)["Body"].read())

    def control(self, format_: str) -> str:
        """Return the text of the control file beside the landed object, in its newest version.

        Raises Permanent NO_CONTROL if it does not exist or is not UTF-8.
        """
        landed = self.spec.landed
        key = f"{landed.key}.control.{format_}"
        try:
            with _landed(f"s3://{landed.bucket}/{key}"):
                body = self.s3.get_object(Bucket=landed.bucket, Key=key)["Body"].read(_LONGEST)
            return str(body.decode("utf-8-sig"))
        except Permanent as error:
            if error.code != "OBJECT_GONE":
                raise
            message = f"there is no control file {key}: land it before the file"
            raise Permanent("NO_CONTROL", message) from error
        except UnicodeDecodeError as error:
            raise Permanent("NO_CONTROL", f"the control file {key} is not UTF-8") from error

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open a stream of the landed version."""
        landed = self.spec.landed
        with _landed(landed.uri):
            answer = self.s3.get_object(**self.source())
            if landed.version == landed.etag != answer["ETag"].strip('"'):  # no versions are kept
                raise _gone(landed.uri)
            body = answer["Body"]  # entering it returns what it wraps, which ends in another way
            with body:
                yield body

    @contextmanager
    def pinned(self) -> Iterator[str]:
        """Provide an address of exactly the landed version that Spark can read, for a while.

        Spark's readers know keys, but not versions. While the landed version is the key's newest,
        the key itself is the address; a newer version that arrives meanwhile raises Replaced.
        Otherwise S3 copies the landed version to a key of its own. It also copies files whose names
        a path pattern would interpret, and files with an extension that does not match the content,
        because Spark decompresses by extension.
        """
        landed = self.spec.landed
        name = plain_name(landed.key, gzipped=is_gzip(self.range(0, 2)))
        as_named = _PLAIN.fullmatch(landed.key) and _extension(name) == _extension(landed.key)
        if not as_named or not self._is_newest():
            yield self._copied(name)
            return
        try:
            yield f"s3a://{landed.bucket}/{landed.key}"
        finally:
            if not self._is_newest():
                raise Replaced("REPLACED", f"{landed.uri} was replaced while it was read")

    def _copied(self, name: str) -> str:
        spec = self.spec
        key = f"staging/{spec.table}/{spec.ingestion}/{spec.attempt}/{name}"
        with _landed(spec.landed.uri):
            # Copying tags as well would need more rights.
            bare = {"TaggingDirective": "REPLACE"}
            self.s3.copy(self.source(), spec.lake_bucket, key, ExtraArgs=bare)
        return f"s3a://{spec.lake_bucket}/{key}"  # S3 itself clears staging/ away, after a day

    def _is_newest(self) -> bool:
        landed = self.spec.landed
        try:
            with translated(landed.uri):
                newest = self.s3.head_object(Bucket=landed.bucket, Key=landed.key)
        except Permanent:  # a delete marker hides the key, and not the version that landed
            return False
        return landed.version in (newest.get("VersionId"), newest["ETag"].strip('"'))

    def report(self, key: str) -> AuditReport:
        """Return the report under a key in the lake bucket. Raises Permanent without one."""
        return AuditReport.from_json(self._object(key), key)

    def baselines(self) -> Baselines:
        """Return the measures of the table's published runs; empty without any run."""
        body = self._object_if_there(baselines_key(self.spec.table))
        return Baselines(self.spec.table) if body is None else Baselines.from_json(body)

    def finished_report(self) -> AuditReport | None:
        """Return the report that an earlier try of this run finished, or None."""
        key = self.spec.report_key
        body = self._object_if_there(key)
        return None if body is None else AuditReport.from_json(body, key)

    def put_report(self, report: AuditReport) -> AuditReport:
        """Write the report once; if another try was faster, return its report instead."""
        where = {"Bucket": self.spec.lake_bucket, "Key": self.spec.report_key}
        try:
            with translated(self.spec.report_key):
                body = report.to_json().encode()
                self.s3.put_object(**where, Body=body, IfNoneMatch="*")
        except Permanent:
            return self.finished_report() or report
        return report

    def address(self, key: str) -> str:
        """Return the address of a key in the lake bucket."""
        return f"s3://{self.spec.lake_bucket}/{key}"

    @contextmanager
    def new_object(self, address: str) -> Iterator[BinaryIO]:
        """Provide a stream to an object at an address in the lake bucket.

        The object exists once the block ends without an error, else nothing of it is left. It need
        not fit into memory. Raises LakegateError.
        """
        target = {"Bucket": self.spec.lake_bucket, "Key": self.key(address)}
        with translated(address), SpooledTemporaryFile(PART) as stream:
            yield cast(BinaryIO, stream)
            is_small = stream.tell() <= PART
            stream.seek(0)
            if is_small:
                self.s3.put_object(**target, Body=stream.read())
            else:
                self.s3.upload_fileobj(stream, **target)

    def key(self, address: str) -> str:
        """Return the key of an address in the lake bucket. Raises ValueError for another bucket."""
        bucket, _, key = address.partition("://")[2].partition("/")
        if bucket != self.spec.lake_bucket:
            raise ValueError(f"{address} is not in the lake bucket")
        return key

    def put(self, key: str, body: bytes) -> None:
        """Put an object into the lake bucket."""
        with translated(key):
            self.s3.put_object(Bucket=self.spec.lake_bucket, Key=key, Body=body)

    def object(self, address: str) -> bytes:
        """Return the object at an address in the lake bucket. Raises Permanent without one."""
        return self._object(self.key(address), address)

    def part(self, address: str, start: int, length: int) -> bytes:
        """Return `length` bytes from `start` of the object at an address in the lake bucket."""
        wanted = f"bytes={start}-{start + length - 1}"
        return self._object(self.key(address), address, Range=wanted)

    def _object(self, key: str, called: str = "", **which: str) -> bytes:
        """Return `which` version or part of an object in the lake bucket, by default all of it.

        Raises Permanent OBJECT_GONE without one, and calls it by its key or as it is `called`.
        """
        with translated(called or key):
            answer = self.s3.get_object(Bucket=self.spec.lake_bucket, Key=key, **which)
            return bytes(answer["Body"].read())

    def _object_if_there(self, key: str) -> bytes | None:
        try:
            return self._object(key)
        except Permanent as error:
            if error.code == "OBJECT_GONE":
                return None
            raise

    def stored(self, key: str) -> int:
        """Return the size of an object in the lake bucket in bytes, 0 without one."""
        try:
            with translated(key):
                answer = self.s3.head_object(Bucket=self.spec.lake_bucket, Key=key)
                return int(answer["ContentLength"])
        except Permanent:
            return 0

    def source(self) -> dict[str, str]:
        """Return S3's parameters for the landed version."""
        landed = self.spec.landed
        source = {"Bucket": landed.bucket, "Key": landed.key}
        return source if landed.version == landed.etag else {**source, "VersionId": landed.version}


@dataclass(frozen=True)
class Held(Storage):
    """The same for a small file whose bytes are in memory, so that it is requested once."""

    body: bytes = b""

    def range(self, start: int, length: int) -> bytes:
        """Return `length` bytes from `start`, fewer where the file ends."""
        return self.body[start : start + length]

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open a stream of the landed version."""
        yield BytesIO(self.body)


def held(storage: Storage) -> Storage:
    """Return the storage with a small file's bytes: a larger one is read by parts.

    Raises LakegateError.
    """
    if not 0 < storage.size < _SMALL:
        return storage
    with storage.open() as stream:
        return Held(storage.spec, storage.s3, storage.secrets, stream.read())


def plain_name(key: str, *, gzipped: bool) -> str:
    """Return a plain file name with an extension that is right for Spark, which goes by it."""
    extension = _extension(key)
    if gzipped:
        return "file.gz"
    return f"file.{extension}" if extension.isalnum() and extension not in _PACKED else "file"


def _extension(key: str) -> str:
    return key.rsplit("/", 1)[-1].rpartition(".")[2] if "." in key.rsplit("/", 1)[-1] else ""


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise boto3's errors as Permanent OBJECT_GONE or as Transient; `what` was requested.

    A missing right is RightMissing.
    """
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] in _GONE:
            raise _gone(what) from error
        message = f"AWS refused the request for {what}: {error}"
        raise unavailable(error, "STORAGE_UNAVAILABLE", message) from error
    except BotoCoreError as error:
        raise Transient(
            "STORAGE_UNAVAILABLE", f"AWS did not respond for {what}: {error}"
        ) from error


@contextmanager
def _landed(uri: str) -> Iterator[None]:
    """Do the same for the bytes of a landed object: a key that refuses them is Permanent."""
    with translated(uri), decrypted(uri):
        yield


def _gone(what: str) -> Permanent:
    return Permanent("OBJECT_GONE", f"{what} no longer exists in the version that landed")
