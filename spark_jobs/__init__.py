"""The Spark job: read a landed object, append it to its branch, audit it and write a report."""
