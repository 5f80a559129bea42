"""Consumers of main that are notified after a merge."""
