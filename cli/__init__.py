"""The `lakegate` command: the same against the local stack and against AWS."""
