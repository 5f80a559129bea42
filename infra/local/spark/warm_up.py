"""The first job run of every local Spark driver, which makes Spark load what each run needs."""

from pyspark.sql import SparkSession


def main() -> None:
    """Write a table and read it."""
    spark = SparkSession.builder.getOrCreate()
    spark.range(10).repartition(2).write.mode("overwrite").parquet("warm-up/files")
    spark.sql("CREATE TABLE IF NOT EXISTS warm.db.numbers (id BIGINT) USING iceberg")
    spark.read.parquet("warm-up/files").writeTo("warm.db.numbers").append()
    spark.table("warm.db.numbers").count()


if __name__ == "__main__":
    main()
