"""Serve a shared run, which takes many waiting files: `serve` is the entry."""
