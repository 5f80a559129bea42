"""Lambda: what can only be seen and done from inside the network."""

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.health.checks import Expected, examine
from functions.health.model import Finding, fail
from functions.pipeline.seed import seed
from functions.telemetry import logger
from functions.wiring import adapters, probes
from lakegate.errors import LakegateError, Permanent


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """Do what the event asks for, and answer what came of it.

    `{"do": "seed"}` gives main what it lacks, and answers what that was. `{"do": "examine"}`
    answers a list of findings; `expected` in it may name versions, as Expected does.
    """
    match event:
        case {"do": "seed"}:
            return asdict(seed(adapters()))
        case {"do": "examine"}:
            return [asdict(finding) for finding in _examine(event.get("expected", {}))]
    raise Permanent("UNKNOWN_REQUEST", f"ask for `seed` or `examine`, not for {event!r}")


def _examine(expected: dict[str, str]) -> list[Finding]:
    try:
        return examine(probes(), Expected(**expected))
    except LakegateError as error:
        fix = "deploy again: the stack tells the functions their settings"
        return [fail("settings", error.message, fix)]
