"""Log lines and metrics for CloudWatch; each line names its ingestion."""

from aws_lambda_powertools import Logger, Metrics

logger = Logger(service="lakegate")
metrics = Metrics(namespace="Lakegate", service="lakegate")
