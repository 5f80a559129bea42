"""Decide on failed ingestions: replay, publish anyway, discard, and what must hold before."""
