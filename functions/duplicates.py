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


def brought_before(batch: Ingestion, others: Iterable[Ingestion]) -> Ingestion | None:
    """The first of `others`, batches of the same folder, with a file of `batch` in one version.

    None where there is none: one counts that is published, or that is not refused and landed
    earlier.
    """
    found = _with_files_of(batch, others)
    return next((i for i in found if i.state is State.PUBLISHED or _is_ahead(i, batch)), None)


def brought_besides(batch: Ingestion, others: Iterable[Ingestion]) -> Ingestion | None:
    """One of `others` with a file of `batch` in one version that is on main, or may yet come there.

    None where there is none. A rejected batch that a person wants published would double its rows.
    """
    found = _with_files_of(batch, others)
    return next((each for each in found if each.state not in _CAME_TO_NOTHING), None)


def _with_files_of(batch: Ingestion, others: Iterable[Ingestion]) -> list[Ingestion]:
    """Other batches with a file of it in the same version, in the order in which they landed."""
    files = {(part.key, part.version) for part in batch.parts}
    same = (i for i in others if files & {(part.key, part.version) for part in i.parts})
    return sorted((i for i in same if i.id != batch.id), key=_moment)


def _is_ahead(earlier: Ingestion, later: Ingestion) -> bool:
    return earlier.state not in _CAME_TO_NOTHING and _moment(earlier) < _moment(later)


def _moment(ingestion: Ingestion) -> tuple[str, str]:
    return ingestion.landed.landed_at, ingestion.id


def _comes_before(earlier: Ingestion, later: Ingestion) -> bool:
    if earlier.table != later.table or earlier.state in _CAME_TO_NOTHING:
        return False
    if later.replaces and _place(earlier) == _place(later):
        return False
    return _moment(earlier) < _moment(later)


def _place(ingestion: Ingestion) -> tuple[str, str]:
    return ingestion.landed.bucket, ingestion.landed.key
