"""A file's bytes as they are without gzip, and a limit to how many those may be."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, cast

from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.formats.source import Bytes
from spark_jobs.quoting import Quoting

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
        message = "the gzip file is damaged or cut short"
        raise Quoting("CORRUPT_FILE", message, f"{message}: {error}") from error


@dataclass(frozen=True)
class Unpacked:
    """A text without gzip: its bytes, and those of its longest line, 0 where nobody looked."""

    size: int
    longest_line: int = 0


def check_gzip(file: Bytes, most: int, limits: Limits = DEFAULTS) -> Unpacked:
    """Unpack the whole file once, keeping nothing, to see that it is whole and no bomb.

    It may unpack to `most` times its size, and to no more than the limit. Raises Permanent
    CORRUPT_FILE, or ZIP_BOMB as soon as there is more.
    """
    by_ratio = max(_HARMLESS, file.size * most)
    limit = min(by_ratio, limits.largest_unpacked)
    unpacked = line = longest = 0
    with plain(file, gzipped=True) as stream:
        while chunk := stream.read(_CHUNK):
            unpacked += len(chunk)
            if unpacked > limit:
                raise _bomb(file.size, limit, by_ratio)
            first, *others = map(len, chunk.replace(b"\r", b"\n").split(b"\n"))
            longest = max(longest, line + first, *others)
            line = others[-1] if others else line + first
    return Unpacked(unpacked, longest)


def _bomb(size: int, limit: int, by_ratio: int) -> Permanent:
    message = f"{size:,} bytes of gzip unpack to more than {limit:,}: is this a zip bomb?"
    what = "contract's maxCompressionRatio" if limit == by_ratio else "limit LargestUnpacked"
    return Permanent("ZIP_BOMB", f"{message} The {what} may allow more")
