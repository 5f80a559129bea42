"""Read landed files of every format."""
