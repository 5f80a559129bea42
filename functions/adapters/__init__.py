"""One module per outside system."""
