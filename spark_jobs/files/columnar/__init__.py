"""Read Parquet, ORC and Avro with Spark."""
