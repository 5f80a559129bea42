"""Whether a file brings what an earlier file brought already."""

from collections.abc import Iterable

from functions.ingestion import Ingestion, State

LIKELY_DUPLICATE = "LIKELY_DUPLICATE"
_CAME_TO_NOTHING = (State.REJECTED, State.ERRORED, State.IGNORED)


def original(ingestion: Ingestion, same: Iterable[Ingestion]) -> Ingestion | None:
    """The first of `same`, files of the same content, whose rows `ingestion` would enter again.

    None where there is none: an earlier file counts that is meant for the same table and was not
    refused. What replaces the rows of its key's earlier versions doubles none of them.
    """
    return next((each for each in same if _comes_before(each, ingestion)), None)


def _comes_before(earlier: Ingestion, later: Ingestion) -> bool:
    if earlier.table != later.table or earlier.state in _CAME_TO_NOTHING:
        return False
    if later.replaces and _place(earlier) == _place(later):
        return False
    return (earlier.landed.landed_at, earlier.id) < (later.landed.landed_at, later.id)


def _place(ingestion: Ingestion) -> tuple[str, str]:
    return ingestion.landed.bucket, ingestion.landed.key
