"""The path of one file, from its event to main."""
