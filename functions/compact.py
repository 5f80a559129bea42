"""Lambda: the daily schedule of compactions. Starts those that are due; the sweep finishes them."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.adapters.all import Adapters
from functions.operations.compaction.compact import Step, start_due
from functions.telemetry import logger, measured
from functions.wiring import adapters


def begun(adapters: Adapters) -> dict[str, int]:
    """Start the compactions that are due; return how many started, and how many wait for a day.

    Raises as `start_due`.
    """
    steps = [each.step for each in start_due(adapters)]
    return {"started": steps.count(Step.STARTED), "waiting": steps.count(Step.WAITS)}


@logger.inject_lambda_context
@measured
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    """Start what is due, for any event."""
    return begun(adapters())
