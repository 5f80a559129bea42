"""The lines of a text file, as Spark reads them in parallel: bytes that may not be text."""

import gzip
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from pyspark.sql import DataFrame, Row, SparkSession

from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.errors import Quoting, explain
from spark_jobs.files.limits import check_line
from spark_jobs.files.source import Bytes
from spark_jobs.spark import jvm

LINE = "line"
_MARK = 3  # bytes of a byte order mark, which is no part of the first line
# In these a line end is one byte, which is no part of any other character.
BY_BYTES = ("UTF-8", "ISO-8859-1")


def read_lines(spark: SparkSession, path: str, encoding: str) -> DataFrame:
    """Every line that is not empty, in the column `LINE`; `encoding` is one of `BY_BYTES`.

    Bytes that are no UTF-8 stay as they are: `is_valid_utf8` tells.
    """
    line = "value" if encoding == "UTF-8" else f"decode(CAST(value AS BINARY), '{encoding}')"
    return spark.read.text(path).where("value <> ''").selectExpr(f"{line} AS {LINE}")


def check_lines(spark: SparkSession, path: str, size: int, limits: Limits) -> None:
    """Make sure that no line of a text of `size` bytes is longer than is taken.

    Hadoop cuts off, or leaves out, lines longer than it is told, so that none need fit into memory;
    then bytes are missing. A text that is shorter than a line may be is not looked at. Raises
    Permanent.
    """
    if size <= limits.longest_line:
        return
    skipping = {"mapreduce.input.linerecordreader.line.maxlength": limits.longest_line + 2}
    rows = spark.read.options(lineSep="\n", **skipping).text(path)
    length = "octet_length(value)"
    found = measure(rows, {"sum": f"coalesce(sum({length} + 1), 0)", "longest": f"max({length})"})
    missing = size - found["sum"] > _MARK
    check_line(limits.longest_line + 1 if missing else found["longest"] or 0, limits)


def measure(rows: DataFrame, measures: Mapping[str, str]) -> dict[str, Any]:
    """What one pass over the rows finds, by name; `measures` are aggregates in Spark SQL.

    Raises Permanent CORRUPT_FILE where the file cannot be read.
    """
    found = collected(rows.selectExpr(*[f"{sql} AS {name}" for name, sql in measures.items()]))
    return dict(found[0].asDict())


def collected(rows: DataFrame) -> list[Row]:
    """A few rows that are found in a file. Raises Permanent where it cannot be read."""
    try:
        return rows.collect()
    except jvm.JavaError as error:
        raise explain(error, "the file cannot be read") from error


def literal(text: str) -> str:
    """A text as Spark SQL writes it, whatever characters it has."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + "".join(c if c >= " " else f"\\u{ord(c):04x}" for c in escaped) + "'"


# A file's bytes as they are without gzip, and a limit to how many those may be.

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
