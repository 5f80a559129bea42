"""One machine as AWS."""
