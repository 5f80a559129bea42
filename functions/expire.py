"""Lambda: the daily schedule. Discards old failed ingestions, and deletes files without a reader.

Commands ask it to discard one ingestion, which takes the publisher's token: no person needs it.
"""

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.adapters.all import Adapters
from functions.operations.decisions.failed import discard, require_attempt
from functions.operations.upkeep.daily import require_recognised, upkeep
from functions.operations.upkeep.expire import expire
from functions.telemetry import logger, measured
from functions.wiring import adapters
from lakegate.errors import LakegateError, Permanent


def answer(adapters: Adapters, event: dict[str, Any]) -> dict[str, Any]:
    """Do what the event asks for, and return the answer.

    `{"do": "discard", "ingestion": ID, "by": NAME, "attempt": NUMBER}` discards an ingestion whose
    attempt, as a person saw it, that is: the answer has `left` of the Outcome, or `code` and
    `message` of the refusal. An older release's request has no attempt. An event without `do` is
    the schedule's. Raises Permanent UNKNOWN_REQUEST.
    """
    match event:
        case {"do": "discard", "ingestion": str(ingestion), "by": str(by)}:
            return _discarded(adapters, ingestion, by, event.get("attempt"))
        case {"do": _}:
            raise Permanent("UNKNOWN_REQUEST", f"the function expire has no answer to {event}")
    return _expired(adapters)


def _discarded(adapters: Adapters, identity: str, by: str, seen: int | None) -> dict[str, Any]:
    try:
        now = adapters.ledger.get(identity)
        require_attempt(now, now.attempt if seen is None else seen)
        outcome = discard(adapters, now, by=by)
    except LakegateError as refusal:
        return {"code": refusal.code, "message": refusal.message}
    logger.warning("discarded", extra={"ingestion": identity, "by": by, "left": outcome.left})
    return {"left": outcome.left}


def _expired(adapters: Adapters) -> dict[str, int]:
    """Return how many branches expired, how many of them are incomplete, and how many dead files.

    Nothing expires from a catalog that is not recognised. Files that no branch reaches any more are
    deleted last. Raises as `upkeep`.
    """
    require_recognised(adapters)
    count = {"expired": 0, "left": 0, "dead_files": 0}
    for each in expire(adapters, adapters.settings.keep_days):
        logger.warning("expired", extra=asdict(each))
        count["left" if each.left else "expired"] += 1
    dead = upkeep(adapters)
    logger.warning("deleted", extra={"files": len(dead.due), "bytes": dead.due_bytes})
    return {**count, "dead_files": len(dead.due)}


@logger.inject_lambda_context
@measured
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer the schedule's event, or a command's request."""
    return answer(adapters(), event)
