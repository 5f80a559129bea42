"""Find how large the texts of a Parquet column become before they are decoded. Pure.

A dictionary repeats its entries, and texts may share their beginnings: so few bytes become any
number of texts. Nothing but the pages themselves tells how many, as a footer may lie.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from struct import error as StructError

import pyarrow as pa

from spark_jobs.files.arrow.thrift import Compact

# Field ids of parquet.thrift: PageHeader, and of the headers within it.
_UNPACKED, _PACKED, _DATA, _DICTIONARY, _DATA_2 = 2, 3, 5, 7, 8
_VALUES, _ENCODING, _ENCODING_2 = 1, 2, 4
_OF_DICTIONARY, _SHARED_BEGINNINGS = (2, 8), 7  # encodings
_LARGEST_DICTIONARY = 16 << 20  # bytes; writers end one at about 1 MiB
_CODECS = {"lz4": "lz4_raw"}  # Arrow's names in footers, and of what unpacks
_LENGTH = Struct("<I")


@dataclass(frozen=True)
class _Page:
    """A page, packed, which has `size` bytes unpacked and so many values of rows."""

    body: memoryview
    size: int
    values: int = 0
    encoding: int | None = None  # None for a dictionary


def most_bytes(pages: memoryview, codec: str, enough: int) -> int:
    """Return how many bytes the texts in a column's pages have at most.

    `codec` is Arrow's name of their compression. A dictionary is read only if the bound would
    exceed `enough` without that. Raises ValueError for pages that nobody can read.
    """
    try:
        all_pages = list(_pages(pages))
        bound = sum(page.size for page in all_pages) + _shared_beginnings_size(all_pages)
        entries = sum(page.values for page in all_pages if page.encoding in _OF_DICTIONARY)
        dictionaries = [page for page in all_pages if page.encoding is None]
        largest = sum(page.size for page in dictionaries)
        if bound + entries * largest > enough and largest <= _LARGEST_DICTIONARY:
            largest = max((_longest(page, codec) for page in dictionaries), default=0)
    except (LookupError, TypeError, StructError) as error:
        raise ValueError(f"a page cannot be read: {error!r}") from error
    return bound + entries * largest


def _shared_beginnings_size(pages: list[_Page]) -> int:
    """Return the most bytes of texts that share their beginnings: each may be all of its page."""
    return sum(page.size * page.values for page in pages if page.encoding == _SHARED_BEGINNINGS)


def _pages(data: memoryview) -> Iterator[_Page]:
    at = 0
    while at < len(data):
        read = Compact(data[at:])
        header = read.struct()
        size, packed, start = header[_UNPACKED], header[_PACKED], at + read.position
        if min(size, packed) < 0:
            raise ValueError("a page has a negative size")
        at = start + packed
        body = data[start:at]
        if _DICTIONARY in header:
            yield _Page(body, size)
        elif _DATA in header:
            yield _Page(body, size, header[_DATA][_VALUES], header[_DATA][_ENCODING])
        elif _DATA_2 in header:
            yield _Page(body, size, header[_DATA_2][_VALUES], header[_DATA_2][_ENCODING_2])


def _longest(page: _Page, codec: str) -> int:
    """Return the bytes of a dictionary's longest entry; of the whole if it cannot be unpacked."""
    try:
        data = page.body if codec == "uncompressed" else _unpacked(page, codec)
    except (OSError, pa.ArrowException):  # Arrow itself says later what is wrong
        return page.size
    longest, at, length_at = 0, 0, _LENGTH.unpack_from
    while at < page.size:
        (length,) = length_at(data, at)
        longest = max(longest, length)
        at += _LENGTH.size + length
    return longest


def _unpacked(page: _Page, codec: str) -> pa.Buffer:
    return pa.decompress(page.body, page.size, _CODECS.get(codec, codec))
