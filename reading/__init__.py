"""What the command line and the quality page read of a deployment, without Spark."""
