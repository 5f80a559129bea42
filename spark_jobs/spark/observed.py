"""Measure all rows in a pass of its own, which reads every column."""

from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Observation

from spark_jobs.spark.errors import explain
from spark_jobs.spark.jvm import JavaError


def observed(rows: DataFrame, *measures: Expression) -> dict[str, Any]:
    """Return aggregates of the rows, by name.

    No row counts twice: Spark counts a task again only if a later stage lacks what it had written.
    Raises Permanent CORRUPT_FILE when the rows cannot be read.
    """
    counts = Observation("file")
    try:
        rows.observe(counts, *measures).write.format("noop").mode("overwrite").save()
    except JavaError as error:
        raise explain(error, "the file's rows cannot be read") from error
    return counts.get
