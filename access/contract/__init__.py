"""Contracts before they are pushed: checked, completed and tried out."""
