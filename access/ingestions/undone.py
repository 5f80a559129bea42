"""Whether the rows of an ingestion were taken from main again, on request."""

from functions.adapters.all import Adapters
from functions.model.ingestion import Ingestion, State
from functions.model.ingestion_summary import status_text
from functions.pipeline.outcome.restorations import undoing
from functions.pipeline.outcome.versions import retraction_of


def undone(adapters: Adapters, ingestion: Ingestion) -> str:
    """Describe the request that removed its rows, or is to remove them; "" without one in force.

    That is a restoration of its table, or a retraction with its state.
    """
    if ingestion.change or len(ingestion.tables) != 1:
        return ""
    request = retraction_of(adapters, ingestion)
    both = [each for each in (ingestion, request) if each and each.state is State.PUBLISHED]
    restorations = undoing(adapters, ingestion.table, (each.id for each in both))
    if commit := restorations.get(ingestion.id):
        return f"undone by commit {commit.hash}: {commit.message}"
    if request is None or request.change is None or request.id in restorations:
        return ""  # without one, or a restoration brought the rows back
    asked = f"retraction {request.id} by {request.change.by}: {request.change.message}"
    return f"{asked} ({status_text(request)})"
