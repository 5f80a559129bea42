"""`lakegate accept`: make a file's drift the new baseline."""

from typing import Annotated

import typer

from access.deployment.choice import find
from access.ingestions.identify import identified
from cli.console import terminal
from cli.console.options import By, Id
from lakegate.text import one_line


def accept(
    context: typer.Context,
    identity: Id,
    by: By,
    reason: Annotated[str, typer.Option(help="Reason why this is normal from now on.")],
) -> None:
    """Accept the drift of a file: use this file as the new drift baseline.

    This publishes nothing: use `lakegate publish` or `lakegate replay` for a rejected file.
    """
    from functions.pipeline.outcome import baselines

    adapters = find(context.obj).adapters()
    ingestion = identified(adapters.ledger, identity)
    accepted = baselines.accept(adapters, ingestion, by, reason)
    message = f"{accepted.by} accepted {ingestion.landed.key} on {accepted.at}: {accepted.reason}"
    terminal.out().print(one_line(message), soft_wrap=True)
