"""Read footers through the libraries that Spark itself uses."""

import json
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from spark_jobs.spark.jvm import java, java_session


def parquet_reader(spark: SparkSession, path: str) -> Any:
    """Return an open `org.apache.parquet.hadoop.ParquetFileReader`; the caller closes it."""
    hadoop = java_session(spark).sessionState().newHadoopConf()
    location = java(spark).org.apache.hadoop.fs.Path(path)
    parquet = java(spark).org.apache.parquet.hadoop
    file = parquet.util.HadoopInputFile.fromPath(location, hadoop)
    return parquet.ParquetFileReader.open(file)


def spark_schema(spark: SparkSession, parquet_schema: Any) -> StructType:
    """Return a Parquet schema (`MessageType`) as Spark's."""
    package = java(spark).org.apache.spark.sql.execution.datasources.parquet
    conf = java_session(spark).sessionState().conf()
    converted = package.ParquetToSparkSchemaConverter(conf).convert(parquet_schema)
    return StructType.fromJson(json.loads(converted.json()))


def orc_reader(spark: SparkSession, path: str) -> Any:
    """Return an open `org.apache.orc.Reader`; the caller closes it."""
    orc = java(spark).org.apache.orc.OrcFile
    options = orc.readerOptions(java_session(spark).sessionState().newHadoopConf())
    return orc.createReader(java(spark).org.apache.hadoop.fs.Path(path), options)


def orc_schema(spark: SparkSession, orc_type: Any) -> StructType:
    """Return an ORC schema (`TypeDescription`) as Spark's."""
    utils = java(spark).org.apache.spark.sql.execution.datasources.orc.OrcUtils
    return StructType.fromJson(json.loads(utils.toCatalystSchema(orc_type).json()))
