"""A file's bytes as they are without gzip, and a limit to how many those may be."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from lakegate.errors import Permanent
from spark_jobs.formats.source import Bytes

GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20
# So much may come out of any file, however small: a short file of one repeated line is no bomb.
_HARMLESS = 64 << 20


@contextmanager
def plain(file: Bytes, *, gzipped: bool) -> Iterator[BinaryIO]:
    """The file's bytes, unpacked where they are gzip.

    Raises Permanent CORRUPT_FILE inside the block where what is read is damaged or cut short.
    """
    try:
        with file.open() as packed:
            yield cast(BinaryIO, gzip.GzipFile(fileobj=packed)) if gzipped else packed
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Permanent(
            "CORRUPT_FILE", f"the gzip file is damaged or cut short: {error}"
        ) from error


def check_gzip(file: Bytes, most: int) -> None:
    """Unpack the whole file once, keeping nothing, to see that it is whole and no bomb.

    It may unpack to `most` times its size. Raises Permanent CORRUPT_FILE, or ZIP_BOMB as soon as
    there is more.
    """
    limit = max(_HARMLESS, file.size * most)
    unpacked = 0
    with plain(file, gzipped=True) as stream:
        while chunk := stream.read(_CHUNK):
            unpacked += len(chunk)
            if unpacked > limit:
                message = (
                    f"{file.size:,} bytes of gzip unpack to more than {limit:,}: is this a zip "
                    "bomb? The contract's option maxCompressionRatio allows more"
                )
                raise Permanent("ZIP_BOMB", message)
