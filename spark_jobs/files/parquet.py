"""Read Parquet through the library that Spark itself uses."""

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
from spark_jobs.files.columnar import ConvertedColumn, typed_source
from spark_jobs.files.levels import check_levels
from spark_jobs.files.limits import check_columns, check_parquet
from spark_jobs.files.source import Bytes, Source
from spark_jobs.spark import jvm

_NANOSECONDS = re.compile(r"^ *\w+ int64 (.+) \(TIMESTAMP\(NANOS,(true|false)\)\)", re.MULTILINE)
# Otherwise Spark accepts pages with wrong checksums.
_OPTIONS = {"parquet.page.verify-checksum.enabled": "true"}
_BATCHES = "spark.sql.parquet.enableVectorizedReader"


def read_parquet(
    spark: SparkSession, path: str, contract: Contract, file: Bytes, limits: Limits
) -> Source:
    """Read the Parquet file at `path`.

    Raises Permanent CORRUPT_FILE, UNREADABLE_TYPE or a limit's code; Transient when storage does
    not respond.
    """
    if check_parquet(file, limits) <= limits.largest_by_rows:
        read_by_rows(spark)
    try:
        reader = columnar.parquet_reader(spark, path)
        try:
            described = reader.getFileMetaData()
            check_columns(described.getSchema().getColumns().size(), limits)
            schema = columnar.spark_schema(spark, described.getSchema())
            converted = _nanoseconds(str(described.getSchema()), schema)
            options = _OPTIONS | _calendar(described)
            declared_rows = reader.getRecordCount()
            check_levels(reader)
        finally:
            reader.close()
    except jvm.JavaError as error:
        raise explain(error, "the Parquet file cannot be read", "CORRUPT_FILE") from error
    read = partial(spark.read.schema(schema).options(**options).parquet, path)
    return typed_source(spark, schema, read, converted, declared_rows, contract)


def read_by_rows(spark: SparkSession) -> None:
    """Make the session read Parquet with Parquet's own reader, row by row, from now on.

    It is slower than Spark's vectorized reader. But it knows more encodings, and it refuses damaged
    pages on which the other one loops forever or moves values to other rows.
    """
    spark.conf.set(_BATCHES, "false")


def reads_batches(spark: SparkSession) -> bool:
    """Return if the session reads Parquet with Spark's vectorized reader."""
    return spark.conf.get(_BATCHES) == "true"


def _nanoseconds(described: str, schema: T.StructType) -> dict[str, ConvertedColumn]:
    """Return the columns of times in nanoseconds, which Spark reads as integers here.

    Iceberg's and Spark's times have microseconds: a value with more digits is broken.
    """
    found = {name: zoned == "true" for name, zoned in _NANOSECONDS.findall(described)}
    nested = found.keys() - {field.name for field in schema}
    if nested:
        message = "nested times in nanoseconds cannot be read: write them in microseconds"
        in_full = f"{message} ({', '.join(sorted(nested))})"
        raise Quoting("UNREADABLE_TYPE", message, in_full)
    return {name: _converted(quoted(name), zoned=zoned) for name, zoned in found.items()}


def _converted(column: str, *, zoned: bool) -> ConvertedColumn:
    instant = f"timestamp_micros({column} div 1000)"
    if zoned:
        return ConvertedColumn(instant, f"coalesce({column} % 1000 <> 0, false)")
    wall = f"CAST({instant} AS TIMESTAMP_NTZ)"
    return ConvertedColumn(wall, f"coalesce({column} % 1000 <> 0, false)")


def _calendar(metadata: Any) -> dict[str, str]:
    """Return the options for days before 15 October 1582.

    Old writers (Hive, Impala, Spark 2) used the Julian calendar, all others the Gregorian. Where
    the file does not say which, Spark must fail instead of guessing.
    """
    written_by = str(metadata.getCreatedBy())
    by_spark = metadata.getKeyValueMetaData().containsKey("org.apache.spark.version")
    unsure = written_by.startswith(("parquet-mr", "impala", "null")) and not by_spark
    mode = "EXCEPTION" if unsure else "CORRECTED"
    return {"datetimeRebaseMode": mode, "int96RebaseMode": mode}


Found = TypeVar("Found")


class Engine:
    """The Parquet readers of one run's session; `notes` are for its report."""

    def __init__(self, spark: SparkSession) -> None:
        self.notes = {"spark": spark.version}
        self._spark = spark

    def read(self, step: Callable[[], Found]) -> Found:
        """Run a step that reads the file; repeat it once if Spark's vectorized reader itself fails.

        The second time Parquet's own reader is used. A step that raises has committed nothing.
        """
        try:
            return step()
        except EngineFault as fault:
            if not reads_batches(self._spark):
                raise
            read_by_rows(self._spark)
            self.notes["parquet"] = f"read by rows: Spark's vectorized reader fails ({fault.kind})"
            return step()
