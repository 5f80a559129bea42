"""Spark as one run reads with it: where its reader of batches fails, the other one is tried."""

from collections.abc import Callable
from typing import TypeVar

from pyspark.sql import SparkSession

from spark_jobs.failures import EngineFault
from spark_jobs.formats.parquet import read_by_rows, reads_batches

Found = TypeVar("Found")


class Engine:
    """The readers of one run's session; `notes` are for its report."""

    def __init__(self, spark: SparkSession) -> None:
        self.notes = {"spark": spark.version}
        self._spark = spark

    def read(self, step: Callable[[], Found]) -> Found:
        """Return what a step that reads the file returns.

        Takes the step once more, with Parquet's own reader, where Spark's fails within itself: a
        step that raises has committed nothing.
        """
        try:
            return step()
        except EngineFault as fault:
            if not reads_batches(self._spark):
                raise
            read_by_rows(self._spark)
            self.notes["parquet"] = f"read by rows: Spark's reader of batches fails ({fault.kind})"
            return step()
