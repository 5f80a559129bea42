"""Spark, its JVM and Iceberg."""
