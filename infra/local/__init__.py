"""The local stack: stand-ins for AWS and Slack, Nessie and Spark on one machine."""
