"""`lakegate accept`: a change that was found unusual is the new normal."""

from typing import Annotated

import typer

from cli import view
from functions import baselining
from reading.deployment import find
from reading.identity import identified


def accept(
    context: typer.Context,
    identity: Annotated[str, typer.Argument(metavar="ID", help="An id, or its beginning.")],
    by: Annotated[str, typer.Option(help="Who accepts it.")],
    reason: Annotated[str, typer.Option(help="Why this is normal from now on.")],
) -> None:
    """Make the drift of a file the new normal: what is compared with restarts at this file.

    Its rows stay where they are: `lakegate publish` or `lakegate replay` bring a rejected file on.
    """
    world = find(context.obj).world()
    ingestion = identified(world.ledger, identity)
    accepted = baselining.accept(world, ingestion, by, reason)
    words = f"{accepted.by} accepted {ingestion.landed.key} on {accepted.at}: {accepted.reason}"
    view.out().print(words, soft_wrap=True)
