"""What is told of an ingestion: to the owners of its table, and to its consumers."""
