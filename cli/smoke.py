"""The smoke test: one tiny file that must get into main once what is deployed has changed."""

from datetime import datetime

from cli import view
from cli.drop import explain, showing
from cli.follow import Sight, dropped, ended, follow
from functions.ingestion import State
from functions.world import World
from lakegate import times
from lakegate.errors import LakegateError
from lakegate.landing import LandedObject

TABLE = "smoke.deployments"


def smoke(world: World, deployed_at: datetime, job_release: str, seconds: float) -> Sight:
    """Send the file of a deployment on its way, unless it is, and see it published.

    Raises LakegateError: TIMED_OUT, which says where the file stands, after `seconds`, or
    SMOKE_FAILED where it ended otherwise.
    """
    key = f"{TABLE.replace('.', '/')}/{deployed_at:%Y%m%d-%H%M%S}.csv"
    body = f"deployed_at,job_release\n{times.text(deployed_at)},{job_release}\n"
    with showing(view.err()) as show:
        sight = follow(world, [_sent(world, key, body.encode())], ended, seconds, show)[0]
    if sight.ingestion.state is not State.PUBLISHED:
        explain(view.err(), [sight])
        message = f"the smoke test's file ended {sight.ingestion.state}, see above"
        raise LakegateError("SMOKE_FAILED", message)
    return sight


def _sent(world: World, key: str, body: bytes) -> Sight:
    """The file on its way: sent by an earlier try that was interrupted, or sent now."""
    for earlier in world.ledger.versions(LandedObject(world.landing.bucket, key, "", "", 0)):
        if earlier.state is State.PUBLISHED or not earlier.ended:
            return Sight(earlier)
    return dropped(world.landing.put(key, body))
