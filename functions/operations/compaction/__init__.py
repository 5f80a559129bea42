"""Compact tables, and publish that like any other change."""
