"""The smoke test: one tiny file that must be published after a deployment."""

from datetime import datetime

from access.ingestions.follow import TrackedIngestion, dropped, ended, follow
from cli.console import terminal
from cli.ingestions.progress import show_progress
from cli.ingestions.wait import explain
from functions.adapters.all import Adapters
from functions.model.ingestion import State
from lakegate import times
from lakegate.errors import LakegateError
from lakegate.landing import LandedObject

TABLE = "smoke.deployments"


def smoke(
    adapters: Adapters, deployed_at: datetime, job_release: str, seconds: float
) -> TrackedIngestion:
    """Drop the file of a deployment, unless an earlier try did, and wait until it is published.

    Raises LakegateError: TIMED_OUT with the file's state after `seconds`, or SMOKE_FAILED if it is
    not published.
    """
    key = f"{TABLE.replace('.', '/')}/{deployed_at:%Y%m%d-%H%M%S}.csv"
    body = f"deployed_at,job_release\n{times.text(deployed_at)},{job_release}\n"
    with show_progress(terminal.err()) as show:
        item = follow(adapters, [_sent(adapters, key, body.encode())], ended, seconds, show)[0]
    if item.ingestion.state is not State.PUBLISHED:
        explain(terminal.err(), adapters, [item])
        message = f"the smoke test's file is {item.ingestion.state}: see above"
        raise LakegateError("SMOKE_FAILED", message)
    return item


def _sent(adapters: Adapters, key: str, body: bytes) -> TrackedIngestion:
    """Return the file that an interrupted try dropped, or drop it now."""
    for earlier in adapters.ledger.versions(LandedObject(adapters.landing.bucket, key, "", "", 0)):
        if earlier.state is State.PUBLISHED or not earlier.ended:
            return TrackedIngestion(earlier)
    return dropped(adapters.landing.put(key, body))
