"""Ingest files of one table together, and in turns."""
