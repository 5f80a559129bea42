"""Parquet, read through the library that Spark itself uses."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from lakegate.contract.columns import quoted
from lakegate.contract.model import Contract
from lakegate.limits import Limits
from spark_jobs.errors import EngineFault, Quoting, explain
from spark_jobs.files import columnar
from spark_jobs.files.columnar import Odd, typed
from spark_jobs.files.levels import check_levels
from spark_jobs.files.limits import check_columns, check_parquet
from spark_jobs.files.source import Bytes, Source
from spark_jobs.spark import jvm

_NANOSECONDS = re.compile(r"^ *\w+ int64 (.+) \(TIMESTAMP\(NANOS,(true|false)\)\)", re.MULTILINE)
# Without it Spark believes a page whose checksum is wrong.
_OPTIONS = {"parquet.page.verify-checksum.enabled": "true"}
_BATCHES = "spark.sql.parquet.enableVectorizedReader"


def read_parquet(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, limits: Limits
) -> Source:
    """The rows of the Parquet file at `path`.

    Raises Permanent CORRUPT_FILE or UNREADABLE_TYPE, or where it is beyond the limits; Transient
    when storage does not answer.
    """
    if check_parquet(file, limits) <= limits.largest_by_rows:
        read_by_rows(spark)
    try:
        reader = columnar.parquet_reader(spark, path)
        try:
            described = reader.getFileMetaData()
            check_columns(described.getSchema().getColumns().size(), limits)
            schema = columnar.spark_schema(spark, described.getSchema())
            odd = _nanoseconds(str(described.getSchema()), schema)
            options = _OPTIONS | _calendar(described)
            promised = reader.getRecordCount()
            check_levels(reader)
        finally:
            reader.close()
    except jvm.JavaError as error:
        raise explain(error, "the Parquet file cannot be read", "CORRUPT_FILE") from error
    read = partial(spark.read.schema(schema).options(**options).parquet, path)
    return typed(spark, schema, read, odd, promised, contract)


def read_by_rows(spark: SparkSession) -> None:
    """Have the session read Parquet with Parquet's own reader, row by row, from now on.

    It costs more than Spark's reader of batches, knows more encodings, and refuses a damaged page
    on which that one spins for ever or moves values to other rows.
    """
    spark.conf.set(_BATCHES, "false")


def reads_batches(spark: SparkSession) -> bool:
    """Return if the session reads Parquet with Spark's reader of batches."""
    return spark.conf.get(_BATCHES) == "true"


def _nanoseconds(described: str, schema: T.StructType) -> dict[str, Odd]:
    """The columns of times in nanoseconds, which Spark (told so) reads as integers.

    Iceberg's times, as Spark's, have microseconds: a value with more digits has no place there.
    """
    found = {name: zoned == "true" for name, zoned in _NANOSECONDS.findall(described)}
    nested = found.keys() - {field.name for field in schema}
    if nested:
        what, todo = (
            "nested times in nanoseconds cannot be read",
            "have them written in microseconds",
        )
        named = f"{what} ({', '.join(sorted(nested))}): {todo}"
        raise Quoting("UNREADABLE_TYPE", f"{what}: {todo}", named)
    return {name: _odd(quoted(name), zoned=zoned) for name, zoned in found.items()}


def _odd(column: str, *, zoned: bool) -> Odd:
    instant = f"timestamp_micros({column} div 1000)"
    if zoned:
        return Odd(instant, f"coalesce({column} % 1000 <> 0, false)")
    wall = f"CAST({instant} AS TIMESTAMP_NTZ)"
    return Odd(wall, f"coalesce({column} % 1000 <> 0, false)")


def _calendar(metadata: Any) -> dict[str, str]:
    """How Spark is to read days before 15 October 1582.

    Old writers (Hive, Impala, Spark 2) counted them by the Julian calendar, all others by the
    Gregorian, and the file does not say which: there Spark fails rather than guess.
    """
    written_by = str(metadata.getCreatedBy())
    by_spark = metadata.getKeyValueMetaData().containsKey("org.apache.spark.version")
    unsure = written_by.startswith(("parquet-mr", "impala", "null")) and not by_spark
    mode = "EXCEPTION" if unsure else "CORRECTED"
    return {"datetimeRebaseMode": mode, "int96RebaseMode": mode}


# Spark as one run reads with it: where its reader of batches fails, the other one is tried.

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
