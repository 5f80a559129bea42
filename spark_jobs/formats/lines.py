"""The lines of a text file, as Spark reads them in parallel: bytes that may not be text."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from lakegate.limits import Limits
from spark_jobs import jvm
from spark_jobs.failures import explain
from spark_jobs.formats.promises import check_line

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
