"""What Spark's Python interface does not offer, taken from the JVM behind it.

PySpark has no public way to its own Java objects; every use of the private one is here.
"""

import json
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakegate.report import DataFile

JavaError = (Py4JJavaError, CapturedException)
_DEEPEST = 10


def find_iceberg_table(spark: SparkSession, name: str) -> Any | None:
    """The Iceberg table (`org.apache.iceberg.Table`) behind a name in Spark SQL, if it is there."""
    session = java(spark).org.apache.spark.sql.classic.SparkSession
    load = java(spark).org.apache.iceberg.spark.Spark3Util.loadIcebergTable
    session.setActiveSession(spark._jsparkSession)  # whose catalogs Iceberg is to look in
    try:
        return load(spark._jsparkSession, name)
    except JavaError as error:
        if "NoSuchTableException" in causes(error)[0]:
            return None
        raise


def schema_of(spark: SparkSession, table: Any) -> StructType:
    """An Iceberg table's schema as Spark's."""
    convert = java(spark).org.apache.iceberg.spark.SparkSchemaUtil.convert
    return StructType.fromJson(json.loads(convert(table.schema()).json()))


def added_files(table: Any) -> tuple[DataFile, ...]:
    """The data files that an Iceberg table's current snapshot added, read from its manifests."""
    snapshot = table.currentSnapshot()
    if snapshot is None:
        return ()
    return tuple(
        DataFile(str(file.location()), file.recordCount(), file.fileSizeInBytes())
        for file in snapshot.addedDataFiles(table.io()).iterator()
    )


def parquet_reader(spark: SparkSession, path: str) -> Any:
    """An open `org.apache.parquet.hadoop.ParquetFileReader`: its caller closes it."""
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()
    location = java(spark).org.apache.hadoop.fs.Path(path)
    parquet = java(spark).org.apache.parquet.hadoop
    file = parquet.util.HadoopInputFile.fromPath(location, hadoop)
    return parquet.ParquetFileReader.open(file)


def spark_schema(spark: SparkSession, parquet_schema: Any) -> StructType:
    """A Parquet schema (`MessageType`) as Spark's."""
    package = java(spark).org.apache.spark.sql.execution.datasources.parquet
    conf = spark._jsparkSession.sessionState().conf()
    converted = package.ParquetToSparkSchemaConverter(conf).convert(parquet_schema)
    return StructType.fromJson(json.loads(converted.json()))


def causes(error: BaseException) -> list[str]:
    """A Java exception and what caused it, each as `class: message`, the root cause last."""
    origin = "java_exception" if isinstance(error, Py4JJavaError) else "_origin"
    cause = getattr(error, origin)
    chain: list[str] = []
    while cause is not None and len(chain) < _DEEPEST:
        chain.append(str(cause.toString()))
        cause = cause.getCause()
    return chain


def java(spark: SparkSession) -> Any:
    """The JVM's packages."""
    return spark._jvm
