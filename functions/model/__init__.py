"""Frozen values that the use cases decide on."""
