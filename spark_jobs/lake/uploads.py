"""Put a new object into S3 while it is written, in parts, so that it need not fit into memory."""

import io
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast

from botocore.exceptions import BotoCoreError, ClientError

PART = 16 << 20  # bytes; S3 takes at most 10,000 parts, of 5 MiB at least
_AT_ONCE = 2  # parts in memory beside the one that is written


@contextmanager
def new_object(s3: Any, target: Mapping[str, str], part: int = PART) -> Iterator[BinaryIO]:
    """Provide a stream to an object, which exists once the block ends without an error.

    `target` has Bucket and Key. Raises boto3's errors; a failure leaves nothing behind.
    """
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        upload = _Upload(s3, target, part, threads)
        try:
            yield cast(BinaryIO, upload)
            upload.complete()
        except BaseException:
            upload.abort()
            raise


class _Upload(io.RawIOBase):
    """A stream whose bytes go to S3 once they are enough for a part."""

    def __init__(
        self, s3: Any, target: Mapping[str, str], part: int, threads: ThreadPoolExecutor
    ) -> None:
        super().__init__()
        self._s3, self._target, self._part, self._threads = s3, dict(target), part, threads
        self._id = ""
        self._left = bytearray()
        self._size = 0
        self._sent: list[Future[dict[str, Any]]] = []
        self._waiting: deque[Future[dict[str, Any]]] = deque()

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, body: Any, /) -> int:
        view = memoryview(body)
        self._left += view
        self._size += view.nbytes
        while len(self._left) >= self._part:
            self._send(bytes(self._left[: self._part]))
            del self._left[: self._part]
        return view.nbytes

    def complete(self) -> None:
        """Make the object of all that was written."""
        if not self._id:
            self._s3.put_object(**self._target, Body=bytes(self._left))
            return
        if self._left:
            self._send(bytes(self._left))
        parts = [each.result() for each in self._sent]
        self._s3.complete_multipart_upload(
            **self._target, UploadId=self._id, MultipartUpload={"Parts": parts}
        )

    def abort(self) -> None:
        """Leave nothing of the object behind."""
        for each in self._sent:
            each.exception()  # a part that comes after the abort would stay
        if self._id:
            with suppress(ClientError, BotoCoreError):  # S3's own rule clears it away later
                self._s3.abort_multipart_upload(**self._target, UploadId=self._id)

    def _send(self, body: bytes) -> None:
        if not self._id:
            self._id = str(self._s3.create_multipart_upload(**self._target)["UploadId"])
        while len(self._waiting) >= _AT_ONCE:
            self._waiting.popleft().result()
        sent = self._threads.submit(self._put, len(self._sent) + 1, body)
        self._sent.append(sent)
        self._waiting.append(sent)

    def _put(self, number: int, body: bytes) -> dict[str, Any]:
        """Put a part; return it as the upload's end names it, with S3's tag and checksum."""
        result = self._s3.upload_part(
            **self._target, UploadId=self._id, PartNumber=number, Body=body
        )
        given = {name: value for name, value in result.items() if name.startswith("Checksum")}
        return {"PartNumber": number, "ETag": result["ETag"], **given}
