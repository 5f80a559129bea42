"""Evidence: the rows that break a check, and where rows come from."""
