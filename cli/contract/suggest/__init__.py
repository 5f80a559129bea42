"""Draft a contract from a sample of data, and try the draft on that sample."""
