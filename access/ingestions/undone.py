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
    published = [ingestion.id] if ingestion.state is State.PUBLISHED else []
    for commit in undoing(adapters, ingestion.table, published).values():
        return f"undone by commit {commit.hash}: {commit.message}"
    request = retraction_of(adapters, ingestion)
    if request is None or request.change is None:
        return ""
    done = [request.id] if request.state is State.PUBLISHED else []
    if undoing(adapters, ingestion.table, done):
        return ""  # a restoration brought the rows back
    asked = f"retraction {request.id} by {request.change.by}: {request.change.message}"
    return f"{asked} ({status_text(request)})"
