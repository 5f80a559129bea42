"""A Parquet file's footer, read through the Parquet library that Spark itself uses."""

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from spark_jobs import jvm
from spark_jobs.conform import columns_of
from spark_jobs.failures import explain


@dataclass(frozen=True)
class Footer:
    """What a file says of itself: its number of rows and its columns as (name, Spark SQL type)."""

    rows: int
    schema: StructType

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The columns as (name, Spark SQL type), in the file's order."""
        return columns_of(self.schema)


def read_footer(spark: SparkSession, path: str) -> Footer:
    """The footer of the file at `path`, without a Spark job.

    Raises Permanent CORRUPT_FILE or UNREADABLE_TYPE, Transient when storage does not answer.
    """
    try:
        reader = jvm.parquet_reader(spark, path)
        try:
            schema = jvm.spark_schema(spark, reader.getFileMetaData().getSchema())
            return Footer(reader.getRecordCount(), schema)
        finally:
            reader.close()
    except jvm.JavaError as error:
        raise explain(error, "the Parquet footer cannot be read", "CORRUPT_FILE") from error
