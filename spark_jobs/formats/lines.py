"""The lines of a text file, as Spark reads them in parallel: bytes that may not be text."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_jobs import jvm
from spark_jobs.failures import explain

LINE = "line"
# In these a line end is one byte, which is no part of any other character.
BY_BYTES = ("UTF-8", "ISO-8859-1")


def read_lines(spark: SparkSession, path: str, encoding: str) -> DataFrame:
    """Every line that is not empty, in the column `LINE`; `encoding` is one of `BY_BYTES`.

    Bytes that are no UTF-8 stay as they are: `is_valid_utf8` tells.
    """
    line = "value" if encoding == "UTF-8" else f"decode(CAST(value AS BINARY), '{encoding}')"
    return spark.read.text(path).where("value <> ''").selectExpr(f"{line} AS {LINE}")


def measure(rows: DataFrame, measures: Mapping[str, str]) -> dict[str, Any]:
    """What one pass over the rows finds, by name; `measures` are aggregates in Spark SQL.

    Raises Permanent CORRUPT_FILE where the file cannot be read.
    """
    try:
        found = rows.selectExpr(*[f"{sql} AS {name}" for name, sql in measures.items()]).collect()
    except jvm.JavaError as error:
        raise explain(error, "the file cannot be read") from error
    return dict(found[0].asDict())


def literal(text: str) -> str:
    """A text as Spark SQL writes it, whatever characters it has."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + "".join(c if c >= " " else f"\\u{ord(c):04x}" for c in escaped) + "'"
