"""Check Parquet's repetition levels, which mark where a row begins in a repeated column.

Spark does not check them. If a column lacks a row, or does not begin with one, Spark silently
moves values of later rows up and leaves the last rows empty.
"""

from functools import reduce
from operator import or_
from typing import Any

from spark_jobs.files.arrow.consistency import damaged
from spark_jobs.spark.jvm import class_name

_RLE = "RLE"


def check_levels(reader: Any) -> None:
    """Refuse a file in which a repeated column has another number of rows than its row group.

    Only these columns are read, through `reader` (a `ParquetFileReader`). Raises Permanent
    CORRUPT_FILE and the reader's exceptions.
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
    width, counted = column.getMaxRepetitionLevel().bit_length(), 0
    is_first = True
    while page := pages.readPage():
        levels = _levels(page)
        if levels is None:  # packed as no writer has packed them since 2014
            return
        begun, starts = count_begun(levels, page.getValueCount(), width)
        if is_first and not starts:
            raise damaged("a repeated column does not begin with a row")
        counted, is_first = counted + begun, False
    if counted != rows:
        raise damaged(f"a repeated column has {counted:,} rows, but its row group has {rows:,}")


def _levels(page: Any) -> bytes | None:
    if class_name(page) == "DataPageV2":
        return bytes(page.getRepetitionLevels().toByteArray())
    if str(page.getRlEncoding().toString()) != _RLE:
        return None
    stream = page.getBytes().toInputStream()
    length = int.from_bytes(stream.readNBytes(4), "little")
    return bytes(stream.readNBytes(min(length, stream.available())))


def count_begun(levels: bytes, values: int, width: int) -> tuple[int, bool]:
    """Count the levels that are 0, where a row begins; also return if the first level is 0.

    Levels have `width` bits each, in Parquet's RLE/bit-packing hybrid ("Encodings", RLE = 3).
    Raises Permanent CORRUPT_FILE if there are fewer than `values`.
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
    part = levels[at : at + size]
    if len(part) < size:
        raise damaged("a page has fewer levels than values")
    return part
