"""Ingestions: find, follow, describe and decide on them."""
