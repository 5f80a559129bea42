"""Find out whether another file has brought, or is about to bring, the same content.

The one that landed first precedes, unless the other has passed its audit: whichever is judged last
sees that, so their states are read consistently. An index may not show one that began a moment ago.
That does no harm: it is still to be judged, and sees this one then.
"""

from collections.abc import Callable, Iterable

from functions.model.ingestion import Ingestion, State, landing

LIKELY_DUPLICATE = "LIKELY_DUPLICATE"
_PASSED = (State.AUDITED, State.PUBLISHED)
_CAME_TO_NOTHING = (State.REJECTED, State.ERRORED, State.IGNORED)


def original(
    ingestion: Ingestion,
    same: Iterable[Ingestion],
    is_retracted: Callable[[Ingestion], bool] = lambda _: False,
) -> Ingestion | None:
    """Return the first of `same`, files of the same content, whose rows it would add again.

    It must be for the same table and precede, and not be known as a duplicate of this one. An
    ingestion that replaces the rows of earlier versions of its key is no duplicate of those, nor is
    any of a published file that `is_retracted`. None without one.
    """
    doubled = (each for each in same if _is_doubled(each, ingestion))
    there = (e for e in doubled if e.state is not State.PUBLISHED or not is_retracted(e))
    return next(there, None)


def brought_before(batch: Ingestion, others: Iterable[Ingestion]) -> Ingestion | None:
    """Return the first preceding batch of the same folder with a file of `batch` in one version."""
    ingestions = _with_files_of(batch, others)
    return next((each for each in ingestions if _comes_first(each, batch)), None)


def brought_besides(batch: Ingestion, others: Iterable[Ingestion]) -> Ingestion | None:
    """Return another batch with a file of `batch`, if it is on main or may still be published.

    A rejected batch that is published anyway would add its rows twice.
    """
    ingestions = _with_files_of(batch, others)
    return next((each for each in ingestions if each.state not in _CAME_TO_NOTHING), None)


def _with_files_of(batch: Ingestion, others: Iterable[Ingestion]) -> list[Ingestion]:
    """Return other batches with a file of it in the same version, in the order they landed."""
    files = {(part.key, part.version) for part in batch.parts}
    same = (i for i in others if files & {(part.key, part.version) for part in i.parts})
    return sorted((i for i in same if i.id != batch.id), key=landing)


def _comes_first(one: Ingestion, other: Ingestion) -> bool:
    """Return whether it has passed, or may still pass and landed before the other."""
    if _has_passed(one):
        return one.id != other.id
    return one.state not in _CAME_TO_NOTHING and landing(one) < landing(other)


def _has_passed(ingestion: Ingestion) -> bool:
    """Return whether its rows passed their audit, published or not."""
    return ingestion.state in _PASSED


def _is_doubled(one: Ingestion, by: Ingestion) -> bool:
    if one.table != by.table or one.audit.duplicate_of == by.id:
        return False
    if by.terms.replaces and one.landed.uri == by.landed.uri:
        return False
    return _comes_first(one, by)
