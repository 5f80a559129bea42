"""Whether a file brings what another one brought already, or is about to.

Who landed earlier comes first, unless the other one has passed its audit: whichever is judged last
sees that. What others have come to is therefore read consistently; that an index may not show one
that was begun a moment ago does no harm, as that one is still to be judged, and then sees this one.
"""

from collections.abc import Iterable

from functions.model.ingestion import Ingestion, State

LIKELY_DUPLICATE = "LIKELY_DUPLICATE"
_PASSED = (State.AUDITED, State.PUBLISHED)
_CAME_TO_NOTHING = (State.REJECTED, State.ERRORED, State.IGNORED)


def original(ingestion: Ingestion, same: Iterable[Ingestion]) -> Ingestion | None:
    """The first of `same`, files of the same content, whose rows `ingestion` would enter again.

    None where there is none: one counts that is meant for the same table and comes first, unless it
    is known to double this one. What replaces the rows of its key's earlier versions doubles none.
    """
    return next((each for each in same if _is_doubled(each, ingestion)), None)


def brought_before(batch: Ingestion, others: Iterable[Ingestion]) -> Ingestion | None:
    """The first of `others`, batches of the same folder, with a file of `batch` in one version.

    None where there is none that comes first.
    """
    found = _with_files_of(batch, others)
    return next((each for each in found if _comes_first(each, batch)), None)


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


def _comes_first(one: Ingestion, other: Ingestion) -> bool:
    """Whether it has passed, or may yet and landed before the other."""
    if _has_passed(one):
        return one.id != other.id
    return one.state not in _CAME_TO_NOTHING and _moment(one) < _moment(other)


def _has_passed(ingestion: Ingestion) -> bool:
    """Return whether its rows passed their audit, published or not."""
    return ingestion.state in _PASSED


def _moment(ingestion: Ingestion) -> tuple[str, str]:
    return ingestion.landed.landed_at, ingestion.id


def _is_doubled(one: Ingestion, by: Ingestion) -> bool:
    if one.table != by.table or one.duplicate_of == by.id:
        return False
    if by.replaces and _place(one) == _place(by):
        return False
    return _comes_first(one, by)


def _place(ingestion: Ingestion) -> tuple[str, str]:
    return ingestion.landed.bucket, ingestion.landed.key
