"""Measurements: ratios of things timed side by side in one run, printed and written as JSON."""
