"""Read samples of each format, with the profile of their columns."""
