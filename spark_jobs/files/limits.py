"""Enforce the limits, and check a Parquet footer before a reader believes it. Pure.

A reader makes the rows that a footer declares, even without values for them, and allocates the
sizes that it declares: a lying footer hangs or kills the job.
"""

from typing import TYPE_CHECKING

from lakegate.errors import Permanent
from lakegate.limits import Limits
from spark_jobs.files.consistency import counted, damaged

if TYPE_CHECKING:  # drafts of contracts read CSV without Spark
    from spark_jobs.files.source import Bytes

FOOTER_END = 8  # bytes after the footer: its length, and the magic
_USUAL_FOOTER = 64 * 1024  # bytes that one request reads, and most footers do not exceed


def check_columns(count: int, limits: Limits) -> None:
    """Refuse a file with too many columns. Raises Permanent TOO_MANY_COLUMNS."""
    if count > limits.most_columns:
        message = f"the file has more than {limits.most_columns:,} columns, the limit MostColumns"
        raise Permanent("TOO_MANY_COLUMNS", message)


def check_rows(count: int, limits: Limits) -> None:
    """Refuse a file that declares too many rows. Raises Permanent TOO_MANY_ROWS."""
    if not 0 <= count <= limits.most_rows:
        message = f"the file declares {count:,} rows; the limit MostRows is {limits.most_rows:,}"
        raise Permanent("TOO_MANY_ROWS", message)


def check_line(length: int, limits: Limits) -> None:
    """Refuse a text with a line that is too long. Raises Permanent LINE_TOO_LONG."""
    if length > limits.longest_line:
        message = f"a line has more than {limits.longest_line:,} bytes, the limit LongestLine"
        raise Permanent("LINE_TOO_LONG", message)


def check_array(size: int, limits: Limits) -> None:
    """Refuse a JSON array that is too large to be read as a whole. Raises Permanent TOO_LARGE."""
    if size > limits.largest_array:
        message = (
            f"the array has more than {limits.largest_array:,} bytes: write one object a line, or "
            "raise the limit LargestArray"
        )
        raise Permanent("TOO_LARGE", message)


def parquet_footer(file: "Bytes") -> bytes:
    """Return a Parquet file's footer, without its length and the magic.

    Raises Permanent CORRUPT_FILE if the file is too short for it.
    """
    end = file.tail(min(_USUAL_FOOTER, file.size))
    length = int.from_bytes(end[-FOOTER_END:][:4], "little")
    if length + FOOTER_END > file.size:
        raise damaged("its footer is longer than the file")
    whole = end if length + FOOTER_END <= len(end) else file.tail(length + FOOTER_END)
    return whole[-length - FOOTER_END : -FOOTER_END]


def check_parquet(footer: bytes, size: int, limits: Limits) -> int:
    """Refuse a Parquet file of so many bytes whose footer is false or exceeds the limits.

    Returns the size of its uncompressed pages in bytes. Raises Permanent CORRUPT_FILE,
    TOO_MANY_ROWS or ZIP_BOMB.
    """
    rows, unpacked = counted(footer, size)
    check_rows(rows, limits)
    if unpacked > limits.largest_unpacked:
        message = (
            f"{size:,} bytes of Parquet uncompress to {unpacked:,}, more than the limit "
            f"LargestUnpacked of {limits.largest_unpacked:,}: this may be a zip bomb"
        )
        raise Permanent("ZIP_BOMB", message)
    return unpacked
