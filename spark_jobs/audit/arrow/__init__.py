"""Answer checks from decoded Arrow data."""
