"""Lambda: what can only be seen and done from inside the network."""

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.seeding import seed
from functions.telemetry import logger
from functions.wiring import world
from lakegate.errors import Permanent


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """Do what the event asks for, and answer what came of it.

    `{"do": "seed"}` gives main what it lacks, and answers what that was.
    """
    match event:
        case {"do": "seed"}:
            return asdict(seed(world()))
    raise Permanent("UNKNOWN_REQUEST", f"ask for `seed`, not for {event!r}")
