"""The operations that keep the lake right: decisions on failures, expiry, reconciliation."""
