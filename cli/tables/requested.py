"""What a command prints about the change that it requested, until that ends."""

from access.ingestions.follow import TrackedIngestion
from access.ingestions.outcomes import state
from cli.console import terminal
from cli.ingestions.wait import wait_for
from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion
from lakegate.job.landing import ID_PART


def follow(
    adapters: Adapters, ingestion: Ingestion, what: str, by: str, *, wait: bool, seconds: float
) -> None:
    """Print the request's id and state, and who made the same one before `by`; wait if asked to."""
    first = ingestion.change.by if ingestion.change else by
    before = f", requested before by {first}" if first != by else ""
    told = f"{ingestion.id}  {what}, {state(ingestion)}{before}"
    terminal.out().print(told, soft_wrap=True)
    end(adapters, ingestion, wait=wait, seconds=seconds)


def end(adapters: Adapters, ingestion: Ingestion, *, wait: bool, seconds: float) -> None:
    """Wait for the request's end and exit like `lakegate drop`, or print how to look at it.

    One that ended at once, or was made before, needs no wait.
    """
    if wait or ingestion.ended:
        wait_for(adapters, [TrackedIngestion(ingestion)], seconds)
    terminal.out().print(f"Progress: `lakegate show {ingestion.id[:ID_PART]}`")
