"""Parquet's repetition levels: they alone say where in a repeated column a row begins.

Spark takes them as they are. Where a column has a row too few, or does not begin with one, Spark
moves the values of later rows up and makes the last ones empty, without a word.
"""

from functools import reduce
from operator import or_
from typing import Any

from lakegate.errors import Permanent
from spark_jobs.spark.jvm import class_name

_RLE = "RLE"


def check_levels(reader: Any) -> None:
    """Refuse a file in which a repeated column has other rows than its row group.

    Reads these columns, and no others, through `reader` (a `ParquetFileReader`). Raises Permanent
    CORRUPT_FILE, and what the reader raises.
    """
    columns = reader.getFileMetaData().getSchema().getColumns()
    repeated = [column for column in columns if column.getMaxRepetitionLevel()]
    if not repeated:
        return
    reader.setRequestedSchema(repeated)
    for number, group in enumerate(reader.getRowGroups()):
        if group.getRowCount():
            pages = reader.readRowGroup(number)
            for column in repeated:
                _check(pages.getPageReader(column), column, group.getRowCount())
            pages.close()


def _check(pages: Any, column: Any, rows: int) -> None:
    width, found = column.getMaxRepetitionLevel().bit_length(), 0
    is_first = True
    while page := pages.readPage():
        levels = _levels(page)
        if levels is None:  # packed as no writer has packed them since 2014
            return
        begun, starts = count_begun(levels, page.getValueCount(), width)
        if is_first and not starts:
            raise _damaged("a repeated column does not begin with a row")
        found, is_first = found + begun, False
    if found != rows:
        raise _damaged(f"a repeated column has {found:,} rows where {rows:,} are")


def _levels(page: Any) -> bytes | None:
    if class_name(page) == "DataPageV2":
        return bytes(page.getRepetitionLevels().toByteArray())
    if str(page.getRlEncoding().toString()) != _RLE:
        return None
    stream = page.getBytes().toInputStream()
    length = int.from_bytes(stream.readNBytes(4), "little")
    return bytes(stream.readNBytes(min(length, stream.available())))


def count_begun(levels: bytes, values: int, width: int) -> tuple[int, bool]:
    """Return how many of so many levels are 0, each a row's beginning, and if the first one is.

    They are of `width` bits each, in Parquet's RLE/bit-packing hybrid ("Encodings", RLE = 3).
    Raises Permanent CORRUPT_FILE where there are fewer.
    """
    at = begun = 0
    starts = None
    left = values
    while left:
        header, at = _varint(levels, at)
        count = min(left, (header >> 1) * (8 if header & 1 else 1))
        size = (count * width + 7) // 8 if header & 1 else (width + 7) // 8
        run = int.from_bytes(_exactly(levels, at, size), "little")
        at += (header >> 1) * width if header & 1 else size
        zeros = _zeros(run, count, width) if header & 1 else count * (not run)
        if starts is None and count:
            starts = run & ((1 << width) - 1) == 0
        begun, left = begun + zeros, left - count
    return begun, bool(starts)


def _zeros(packed: int, count: int, width: int) -> int:
    """Return how many of `count` numbers of `width` bits, packed into one, are 0."""
    lowest = ((1 << width * count) - 1) // ((1 << width) - 1)  # the lowest bit of each
    return count - (reduce(or_, (packed >> n for n in range(width))) & lowest).bit_count()


def _varint(levels: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        (byte,) = _exactly(levels, at, 1)
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _exactly(levels: bytes, at: int, size: int) -> bytes:
    found = levels[at : at + size]
    if len(found) < size:
        raise _damaged("a page has fewer levels than values")
    return found


def _damaged(how: str) -> Permanent:
    return Permanent("CORRUPT_FILE", f"the Parquet file is damaged: {how}")
