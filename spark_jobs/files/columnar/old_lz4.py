"""Refuse Parquet's first LZ4 codec where its pages are not framed as Hadoop frames them.

The format never said how they are framed, so writers differ, and Spark reads only Hadoop's way.
"""

from collections.abc import Iterator
from typing import Any

from lakegate.errors import Permanent
from spark_jobs.files.arrow.thrift import Compact
from spark_jobs.files.source import Bytes

# Field ids of parquet.thrift: FileMetaData, RowGroup, ColumnChunk, ColumnMetaData, PageHeader,
# DataPageHeaderV2.
_ROW_GROUPS, _CHUNKS, _ROWS, _META = 4, 1, 3, 3
_CODEC, _PACKED, _DATA, _DICTIONARY = 4, 7, 9, 11
_PAGE_UNPACKED, _PAGE_PACKED, _SECOND_VERSION, _LEVELS = 2, 3, 8, (5, 6)
_LZ4 = 5  # the newer codec, LZ4_RAW, is 7
_FRAME = 8  # bytes: the sizes of a block, unpacked and packed
_HEAD = 64 << 10  # bytes in which a page's header ends


def check_lz4(file: Bytes, footer: bytes) -> None:
    """Refuse a Parquet file with LZ4 that Spark cannot unpack, by the first page of each column.

    The footer is a true one (`consistency.check_parquet`). Raises Permanent UNREADABLE_TYPE.
    """
    if not all(_is_framed(file, chunk) for chunk in _first_chunks(footer)):
        message = (
            "the Parquet file is compressed by the old codec LZ4 in a way that Spark cannot read: "
            "write it with LZ4_RAW, ZSTD or SNAPPY"
        )
        raise Permanent("UNREADABLE_TYPE", message)


def _first_chunks(footer: bytes) -> Iterator[dict[int, Any]]:
    """Yield the chunks of the first row group that has rows, as far as they have this codec."""
    for id_, value in Compact(footer).fields(_ROW_GROUPS):
        if id_ == _ROW_GROUPS and value[_ROWS]:
            chunks = (chunk[_META] for chunk in value[_CHUNKS])
            yield from (chunk for chunk in chunks if chunk[_CODEC] == _LZ4)
            return


def _is_framed(file: Bytes, chunk: dict[int, Any]) -> bool:
    start = min(filter(None, (chunk[_DATA], chunk.get(_DICTIONARY))))
    head = file.range(start, min(chunk[_PACKED], _HEAD))
    read = Compact(head)
    try:
        page = read.struct()
        levels = sum(page.get(_SECOND_VERSION, {}).get(id_, 0) for id_ in _LEVELS)
        unpacked, packed = page[_PAGE_UNPACKED] - levels, page[_PAGE_PACKED] - levels
    except (ValueError, LookupError, TypeError, AttributeError):
        return True  # damage, of which Spark's reader tells
    frame = head[read.position + levels :][:_FRAME]
    sizes = int.from_bytes(frame[:4], "big"), int.from_bytes(frame[4:], "big")
    return packed <= 0 or (sizes[0] <= unpacked and sizes[1] <= packed - _FRAME)
