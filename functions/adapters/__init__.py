"""The outside systems: one module for each."""
