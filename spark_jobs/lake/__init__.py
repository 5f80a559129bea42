"""Reach S3, the token's secret and Nessie's branches."""
