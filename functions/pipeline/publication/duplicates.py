"""Find out whether another file has brought, or is about to bring, the same content, and hold it.

The one that landed first precedes, unless the other has passed its audit: whichever is judged last
sees that, so their states are read consistently. An index may not show one that began a moment ago.
That does no harm: it is still to be judged, and sees this one then.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from functions.adapters.all import Adapters
from functions.model.ingestion import SET_BACK, Ingestion, State, landing
from functions.pipeline.outcome.finish import end, end_if_merged
from functions.pipeline.outcome.versions import is_retracted
from lakegate.audit.report import Reason

LIKELY_DUPLICATE = "LIKELY_DUPLICATE"
_PASSED = (State.AUDITED, State.PUBLISHED)
_CAME_TO_NOTHING = (State.REJECTED, State.ERRORED, State.IGNORED)


def earlier(adapters: Adapters, ingestion: Ingestion) -> Ingestion | None:
    """Return the ingestion that brought the same bytes, or files of the same batch, before."""
    if ingestion.parts:  # whose manifest may be alike from day to day
        return brought_before(ingestion, adapters.ledger.versions(ingestion.landed))
    same = adapters.ledger.same_content(ingestion)
    return original(ingestion, same, partial(is_retracted, adapters))


def is_held(ingestion: Ingestion, first: Ingestion) -> bool:
    """Return whether it waits until a person approves that it brings what `first` brought.

    Who approved that need not do so again where another reason kept it from main since, or where
    main lost both.
    """
    lost_both = ingestion.turn and SET_BACK in first.times
    was_asked = lost_both or ingestion.audit.duplicate_of == first.id
    knew = ingestion.decisions.approval and was_asked
    return _may_hold(ingestion) and not (knew or ingestion.is_approved_despite(LIKELY_DUPLICATE))


def hold(adapters: Adapters, audited: Ingestion, first: Ingestion) -> Ingestion:
    """Reject an audited ingestion as a likely duplicate of `first`; return it as it is then."""
    what = "some of its files" if audited.parts else "the same bytes"
    message = f"{first.landed.uri} brought {what} before; it needs a decision"
    known = audited.but(audit=replace(audited.audit, duplicate_of=first.id))
    return end(
        adapters, known.without_approval(), State.REJECTED, Reason(LIKELY_DUPLICATE, message)
    )


def doubled(adapters: Adapters, ingestion: Ingestion) -> Ingestion | None:
    """Return an audited ingestion as it is then, if it would double what another brought.

    Return None if nothing is doubled, or a person approved just that.
    """
    first = doubled_by(adapters, ingestion)
    if first is None:
        return None
    return end_if_merged(adapters, ingestion) or hold(adapters, ingestion, first)


def doubled_by(adapters: Adapters, ingestion: Ingestion) -> Ingestion | None:
    """Return what an audited ingestion would double where one of the two was approved, or None.

    The approval of failed checks says nothing about that. And it may come while the verdict on the
    other is recorded: so both look again, after they were saved as audited.
    """
    if ingestion.state is not State.AUDITED or not _may_hold(ingestion):
        return None
    first = earlier(adapters, ingestion)
    if first is None or not is_held(ingestion, first):
        return None
    came_back = _has_passed(first) and first.decisions.approval
    return first if ingestion.decisions.approval or came_back else None


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


def _may_hold(ingestion: Ingestion) -> bool:
    return bool(ingestion.parts) or ingestion.terms.on_duplicate == "hold"


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
