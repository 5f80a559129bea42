"""Checks of a deployment from within."""
