"""Compare the ledger with the landing bucket and main, and repair it."""
