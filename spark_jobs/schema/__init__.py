"""Compare a file with its contract and its table."""
