"""Lambda: the weekly schedule. Posts a digest of the last week."""

import os
from datetime import datetime
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.adapters.all import Adapters
from functions.operations.week import Week
from functions.operations.weekly_digest import digest
from functions.telemetry import logger, measured
from functions.wiring import adapters
from lakegate import times


def review(adapters: Adapters, channel: str, until: str = "") -> int:
    """Queue the digest for a channel ("" for the default one); return how many files landed.

    It is of the week `until` a time, or now. A repeated digest of the same week is posted once.
    """
    week = Week(datetime.fromisoformat(until or adapters.now()))
    for brief in adapters.ledger.landed(week.begins, times.text(week.until)):
        week.add(brief)
    terms = adapters.settings.keep_days, adapters.settings.page_url
    adapters.alerts.post(channel, digest(week, adapters.ledger.open_failures(), *terms))
    return week.files


@logger.inject_lambda_context
@measured
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    """Return how many files landed, for a manual invocation; the schedule's event has its time."""
    channel = os.environ.get("LAKEGATE_DIGEST_CHANNEL", "")
    until = event.get("time", "") if event else ""  # an invocation by hand may have no payload
    return {"landed": review(adapters(), channel, until)}
