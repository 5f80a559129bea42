"""Carry out one job run: an ingestion, an audit again, a change or a probe."""
