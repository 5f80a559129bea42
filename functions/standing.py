"""What has become of an ingestion, in words."""

from functions.ingestion import IN_FLIGHT, Ingestion


def standing(ingestion: Ingestion) -> str:
    """What has become of an ingestion, for somebody who wanted something else of it."""
    state, times = ingestion.state, ingestion.times
    since = times.get("replayed" if state in IN_FLIGHT else state.value, "")
    words = f"it is {state} now"
    if ingestion.approval:
        words += f", as {ingestion.approval.by} wanted it published ({ingestion.approval.at})"
    elif ingestion.discarded:
        words += f", and was discarded ({times.get('discarded', '')})"
    elif ingestion.superseded_by:
        words += f", and superseded by {ingestion.superseded_by}, a newer version of it"
        words += f" that is published ({times.get('superseded', '')})"
    elif ingestion.tries_from and state in IN_FLIGHT:
        words += f", in attempt {ingestion.attempt}, as it was replayed ({since})"
    return words
