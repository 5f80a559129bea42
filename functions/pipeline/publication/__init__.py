"""Bring what passed its audit to main, once and in order."""
