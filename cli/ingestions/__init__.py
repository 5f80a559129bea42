"""Ingestions: list, show, inspect and follow them, and decide on those that failed."""
