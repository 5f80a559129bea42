"""Read CSV and JSON with Spark."""
