"""Log lines and metrics, as CloudWatch reads them; each line names the ingestion it is about."""

from aws_lambda_powertools import Logger, Metrics

logger = Logger(service="lakegate")
metrics = Metrics(namespace="Lakegate", service="lakegate")
