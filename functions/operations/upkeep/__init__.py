"""Delete what has expired, and what nobody can read."""
