"""The `lakegate` command, the same for the local stack and for AWS."""
