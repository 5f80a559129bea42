"""Read the lines of a text file in parallel, and uncompress gzip within limits."""

import gzip
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from pyspark.sql import DataFrame, Row, SparkSession

from lakegate.errors import Permanent
from lakegate.limits import DEFAULTS, Limits
from spark_jobs.files.limits import check_line
from spark_jobs.files.source import PLACE, Bytes
from spark_jobs.spark import jvm
from spark_jobs.spark.errors import Quoting, explain

LINE = "line"
_MARK = 3  # bytes of a byte order mark, which is no part of the first line
# Encodings in which a line end is one byte that no other character contains.
BY_BYTES = ("UTF-8", "ISO-8859-1")


def read_lines(spark: SparkSession, path: str, encoding: str) -> DataFrame:
    """Return the lines that are not empty, in the column `LINE`; `encoding` is one of `BY_BYTES`.

    Bytes that are not UTF-8 stay as they are; `is_valid_utf8` finds them.
    """
    return spark.read.text(path).where("value <> ''").selectExpr(_line(encoding))


def numbered_lines(spark: SparkSession, path: str, encoding: str) -> DataFrame:
    """Return all lines, empty ones too, each with its `PLACE`; `encoding` as in `read_lines`."""
    lines = spark.read.text(path)
    return lines.selectExpr(_line(encoding), f"monotonically_increasing_id() AS {PLACE}")


def _line(encoding: str) -> str:
    line = "value" if encoding == "UTF-8" else f"decode(CAST(value AS BINARY), '{encoding}')"
    return f"{line} AS {LINE}"


def check_lines(spark: SparkSession, path: str, size: int, limits: Limits) -> None:
    """Raise Permanent if a line of a text of `size` bytes is longer than the limit.

    Hadoop truncates or skips longer lines, so that none need fit into memory; then bytes are
    missing. A text shorter than the limit is not read.
    """
    if size <= limits.longest_line:
        return
    skipping = {"mapreduce.input.linerecordreader.line.maxlength": limits.longest_line + 2}
    rows = spark.read.options(lineSep="\n", **skipping).text(path)
    length = "octet_length(value)"
    sizes = measure(rows, {"sum": f"coalesce(sum({length} + 1), 0)", "longest": f"max({length})"})
    missing = size - sizes["sum"] > _MARK
    check_line(limits.longest_line + 1 if missing else sizes["longest"] or 0, limits)


def measure(rows: DataFrame, measures: Mapping[str, str]) -> dict[str, Any]:
    """Return aggregates over the rows, by name; `measures` are Spark SQL.

    Raises Permanent CORRUPT_FILE if the file cannot be read.
    """
    answer = collected(rows.selectExpr(*[f"{sql} AS {name}" for name, sql in measures.items()]))
    return dict(answer[0].asDict())


def collected(rows: DataFrame) -> list[Row]:
    """Return the rows, of which there must be few. Raises Permanent if the file cannot be read."""
    try:
        return rows.collect()
    except jvm.JavaError as error:
        raise explain(error, "the file cannot be read") from error


def literal(text: str) -> str:
    """Return a text as a Spark SQL literal, whatever its characters."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + "".join(c if c >= " " else f"\\u{ord(c):04x}" for c in escaped) + "'"


_CHUNK = 1 << 20
# A small file of one repeated line is no zip bomb: any file may have so many bytes.
_ALWAYS_ALLOWED = 64 << 20


@contextmanager
def uncompressed(file: Bytes, *, gzipped: bool) -> Iterator[BinaryIO]:
    """Open the file's bytes, uncompressed if they are gzip.

    Raises Permanent CORRUPT_FILE inside the block where the data is damaged or truncated.
    """
    try:
        with file.open() as packed:
            yield cast(BinaryIO, gzip.GzipFile(fileobj=packed)) if gzipped else packed
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        message = "the gzip file is damaged or truncated"
        raise Quoting("CORRUPT_FILE", message, f"{message}: {error}") from error


@dataclass(frozen=True)
class Unpacked:
    """The size of an uncompressed text, and of its longest line; 0 if that was not measured."""

    size: int
    longest_line: int = 0


def check_gzip(file: Bytes, most: int, limits: Limits = DEFAULTS) -> Unpacked:
    """Uncompress the whole file once, without storing it, to check that it is complete and no bomb.

    It may grow to `most` times its size, and not beyond the limit. Raises Permanent CORRUPT_FILE,
    or ZIP_BOMB as soon as it is larger.
    """
    limit = most_unpacked(file.size, most, limits)
    unpacked = line = longest = 0
    with uncompressed(file, gzipped=True) as stream:
        while chunk := stream.read(_CHUNK):
            unpacked += len(chunk)
            if unpacked > limit:
                raise _bomb(file.size, limit, limits)
            first, *others = map(len, chunk.replace(b"\r", b"\n").split(b"\n"))
            longest = max(longest, line + first, *others)
            line = others[-1] if others else line + first
    return Unpacked(unpacked, longest)


def most_unpacked(size: int, most: int, limits: Limits) -> int:
    """Return to how many bytes a file of `size` may grow, if to at most `most` times its size."""
    return min(max(_ALWAYS_ALLOWED, size * most), limits.largest_unpacked)


def _bomb(size: int, limit: int, limits: Limits) -> Permanent:
    by_ratio = limit < limits.largest_unpacked
    what = "contract's maxCompressionRatio" if by_ratio else "limit LargestUnpacked"
    message = (
        f"{size:,} bytes of gzip uncompress to more than {limit:,}: this may be a zip bomb. If it "
        f"is not, raise the {what}"
    )
    return Permanent("ZIP_BOMB", message)
