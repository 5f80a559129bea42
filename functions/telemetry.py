"""Log lines and metrics for CloudWatch; each line names its ingestion.

Metrics are collected, and written to the log when a handler ends, from where CloudWatch takes them.
Where no handler runs, as in a command, none is written.
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit, single_metric

Handler = Callable[..., Any]

_NAMESPACE, _SERVICE = "Lakegate", "lakegate"
logger = Logger(service=_SERVICE)


class _HandlersMetrics(Metrics):
    """Metrics that are collected while a handler runs: a hundred of one name would be printed."""

    in_handler = False

    def add_metric(self, *metric: Any, **more: Any) -> None:
        if self.in_handler:
            super().add_metric(*metric, **more)


metrics = _HandlersMetrics(namespace=_NAMESPACE, service=_SERVICE)
_by_table: Counter[tuple[str, str]] = Counter()


def count_files(name: str, files: Sequence[Sequence[str]]) -> None:
    """Count files in a metric of the stage, and in one of each of their tables.

    `files` has the tables of each file, none where they are unknown.
    """
    metrics.add_metric(name, "Count", len(files))
    _by_table.update((name, table) for tables in files for table in tables)


def measured(handler: Handler) -> Handler:
    """Return the handler of a function, after which its metrics are written.

    They name the stage of LAKEGATE_STAGE. Those of tables are written if LAKEGATE_TABLE_METRICS is
    "true", as CloudWatch charges for each.
    """
    writing = metrics.log_metrics(handler)

    @wraps(handler)
    def run(event: Any, context: Any) -> Any:
        stage = os.environ.get("LAKEGATE_STAGE", "")
        if stage:
            metrics.add_dimension("stage", stage)
        metrics.in_handler = True
        try:
            return writing(event, context)
        finally:
            metrics.in_handler = False
            if os.environ.get("LAKEGATE_TABLE_METRICS") == "true":
                _write_by_table(stage)
            _by_table.clear()

    return run


def _write_by_table(stage: str) -> None:
    for (name, table), many in _by_table.items():
        named = {"service": _SERVICE, "stage": stage, "table": table}
        with single_metric(
            name, MetricUnit.Count, many, namespace=_NAMESPACE, default_dimensions=named
        ):
            pass
