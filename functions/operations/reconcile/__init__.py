"""Compare the landing bucket, the ledger and main."""
