"""Check Parquet's old times (INT96), of which Spark loses digits in silence.

They have nanoseconds, and any day of 32 bits. Spark cuts off all but microseconds, and what exceeds
64 bits of these.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.files.arrow.parquet import innermost, metadata_of, page_start, pages_of
from spark_jobs.files.source import Bytes
from spark_jobs.files.stream import Stream
from spark_jobs.spark.errors import Quoting

_MOST_MILLISECONDS = (1 << 63) // 1000  # whose microseconds have 64 bits


def check_int96(file: Bytes, footer: bytes) -> None:
    """Refuse a Parquet file with a time in INT96 that microseconds cannot hold.

    Only columns of this type are read, one chunk at a time. Raises Permanent UNREADABLE_TYPE for
    too many digits, CORRUPT_FILE for a time that is out of range or cannot be decoded.
    """
    try:
        metadata = metadata_of(footer)
        for group in range(metadata.num_row_groups):
            for path, pages in _chunks(file, metadata.row_group(group)):
                _check(metadata, group, path, pages)
    except (pa.ArrowException, OSError) as error:
        message = "the Parquet file is damaged: its times (INT96) cannot be decoded"
        raise Quoting("CORRUPT_FILE", message, f"{message}: {error}") from error


def _chunks(file: Bytes, group: pq.RowGroupMetaData) -> Iterator[tuple[str, Stream]]:
    """Yield the path and the pages of each chunk of these times."""
    for chunk in map(group.column, range(group.num_columns if group.num_rows else 0)):
        if chunk.physical_type == "INT96":
            start = page_start(chunk)
            body = file.range(start, chunk.total_compressed_size)
            yield chunk.path_in_schema, pages_of(body, start)


def _check(metadata: pq.FileMetaData, group: int, path: str, pages: Stream) -> None:
    milliseconds, micros, nanos = (
        _counted(metadata, group, path, pages, unit) for unit in ("ms", "us", "ns")
    )
    if np.any(np.abs(milliseconds) >= _MOST_MILLISECONDS):
        message = f"the Parquet file is damaged: a time of its column {path} is in no year"
        raise Quoting("CORRUPT_FILE", "the Parquet file is damaged: a time is in no year", message)
    if np.any(nanos != micros * 1000):  # both wrap alike beyond 64 bits
        message = "times in INT96 have digits beyond microseconds: round them to microseconds"
        raise Quoting("UNREADABLE_TYPE", message, f"{message} ({path})")


def _counted(
    metadata: pq.FileMetaData, group: int, path: str, pages: Stream, unit: str
) -> np.ndarray[Any, Any]:
    """Return the times as counts of a unit since 1970, without nulls."""
    reader = pq.ParquetFile(
        pa.PythonFile(pages, "r"), metadata=metadata, coerce_int96_timestamp_unit=unit
    )
    values = reader.read_row_group(group, columns=[path], use_threads=False).column(0)
    array = innermost(values.combine_chunks())
    counted: np.ndarray[Any, Any] = array.drop_null().view(pa.int64()).to_numpy()
    return counted
