"""Restore what the ledger or main lost."""
