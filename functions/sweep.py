"""Lambda: the schedule. Finishes whatever an event forgot."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.operations.sweep import sweep
from functions.telemetry import logger, metrics
from functions.wiring import adapters


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    """Answer how much was done, by kind, for whoever invokes it by hand."""
    return sweep(adapters())
