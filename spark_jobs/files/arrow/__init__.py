"""Decode files with Arrow, if it reads them exactly as Spark does."""
