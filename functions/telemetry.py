"""Log lines and metrics for CloudWatch; each line names its ingestion."""

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit, single_metric

_NAMESPACE, _SERVICE = "Lakegate", "lakegate"
logger = Logger(service=_SERVICE)
metrics = Metrics(namespace=_NAMESPACE, service=_SERVICE)


def count_for_alarm(name: str, stage: str) -> None:
    """Count one in a metric that an alarm of the stage watches; other metrics name no stage."""
    dimensions = {"service": _SERVICE, "stage": stage}
    with single_metric(name, MetricUnit.Count, 1, namespace=_NAMESPACE) as metric:
        for key, value in dimensions.items():
            metric.add_dimension(key, value)
