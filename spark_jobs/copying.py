"""Have S3 itself copy the beginning of an object, in parts, and end the copy in another way."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

SMALLEST_PART = 5 << 20  # S3's limit for all parts but the last
_MOST_PARTS = 10_000
USUAL_PART = 256 << 20
_AT_ONCE = 4


def copy_beginning(
    s3: Any,
    source: Mapping[str, Any],
    target: Mapping[str, str],
    length: int,
    end: bytes,
    part: int = USUAL_PART,
) -> None:
    """Put the first `length` bytes of an object, `SMALLEST_PART` at least, and then `end`.

    `source` has the parameters CopySource and CopySourceIfMatch, `target` has Bucket and Key. A
    part has about `part` bytes. Raises boto3's errors, and leaves nothing behind then.
    """
    ranges = _ranges(length, part)
    with _upload(s3, target) as upload, ThreadPoolExecutor(_AT_ONCE) as pool:

        def copied(number: int) -> Mapping[str, Any]:
            range_ = ranges[number - 1]
            copy = s3.upload_part_copy(
                **upload, **source, PartNumber=number, CopySourceRange=range_
            )
            return _part(number, copy["CopyPartResult"])

        parts = list(pool.map(copied, range(1, len(ranges) + 1)))
        last = len(ranges) + 1
        parts.append(_part(last, s3.upload_part(**upload, PartNumber=last, Body=end)))
        s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})


def _ranges(length: int, part: int) -> Sequence[str]:
    """Return the ranges of bytes to copy, each of S3's smallest size at least."""
    count = min(-(-length // part), length // SMALLEST_PART, _MOST_PARTS - 1)
    starts = [length * n // count for n in range(count + 1)]
    return [f"bytes={a}-{b - 1}" for a, b in pairwise(starts)]


@contextmanager
def _upload(s3: Any, target: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Provide the parameters of an upload in parts; a failure leaves nothing of it behind."""
    upload = {**target, "UploadId": s3.create_multipart_upload(**target)["UploadId"]}
    try:
        yield upload
    except BaseException:
        with suppress(ClientError, BotoCoreError):  # S3's own rule clears it away later
            s3.abort_multipart_upload(**upload)
        raise


def _part(number: int, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part as the upload's end names it: with the tag and the checksum that S3 gave it."""
    given = {name: value for name, value in result.items() if name.startswith("Checksum")}
    return {"PartNumber": number, "ETag": result["ETag"], **given}
