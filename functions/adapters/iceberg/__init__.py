"""Iceberg's tables, by pyiceberg."""
