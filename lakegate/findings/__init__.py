"""What an audit found, in words and values for people."""
