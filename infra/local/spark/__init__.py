"""Spark as EMR Serverless would run it."""
