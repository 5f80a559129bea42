"""Lambda: the daily schedule. Discards failed ingestions after their retention time."""

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.operations.expire import expire
from functions.telemetry import logger, metrics
from functions.wiring import adapters


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    """Return how many branches expired, and how many of them are incomplete."""
    now = adapters()
    count = {"expired": 0, "left": 0}
    for each in expire(now, now.settings.keep_days):
        logger.warning("expired", extra=asdict(each))
        count["left" if each.left else "expired"] += 1
    return count
