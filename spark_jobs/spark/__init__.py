"""Access Spark, its JVM and Iceberg."""
