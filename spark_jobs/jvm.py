"""What Spark's Python interface does not offer, taken from the JVM behind it.

PySpark has no public way to its own Java objects; every use of the private one is here.
"""

from typing import Any

from pyspark.sql import SparkSession


def iceberg_table(spark: SparkSession, name: str) -> Any:
    """The Iceberg table (`org.apache.iceberg.Table`) behind a name in Spark SQL."""
    return java(spark).org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        spark._jsparkSession, name
    )


def parquet_reader(spark: SparkSession, path: str) -> Any:
    """An open `org.apache.parquet.hadoop.ParquetFileReader`: its caller closes it."""
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()
    location = java(spark).org.apache.hadoop.fs.Path(path)
    parquet = java(spark).org.apache.parquet.hadoop
    file = parquet.util.HadoopInputFile.fromPath(location, hadoop)
    return parquet.ParquetFileReader.open(file)


def spark_schema(spark: SparkSession, parquet_schema: Any) -> str:
    """A Parquet schema (`MessageType`) as Spark's, in JSON."""
    package = java(spark).org.apache.spark.sql.execution.datasources.parquet
    conf = spark._jsparkSession.sessionState().conf()
    return str(package.ParquetToSparkSchemaConverter(conf).convert(parquet_schema).json())


def java(spark: SparkSession) -> Any:
    """The JVM's packages."""
    return spark._jvm
