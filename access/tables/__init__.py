"""Tables of main or a branch, read without Spark."""
