"""What became of an ingestion, and of what a person did with a failed one, in words. Pure."""

from collections.abc import Iterator

from functions.model.ingestion import Ingestion, State
from functions.operations.failed import Outcome


def published(ingestion: Ingestion) -> str:
    """What became of the table's rows, in words."""
    if ingestion.change:
        return f"{ingestion.rows:,} rows added, {ingestion.replaced_rows:,} removed"
    return f"{ingestion.rows:,} rows"


def replayed(outcome: Outcome) -> str:
    """That it is on its way."""
    return f"attempt {outcome.ingestion.attempt} of {outcome.ingestion.name} is on its way"


def approved(outcome: Outcome, by: str) -> str:
    """Whether it is published, as `by` wanted."""
    now = outcome.ingestion
    if now.state is not State.PUBLISHED:
        return f"{now.name}: {by}'s approval is recorded; it is {now.state}"
    if now.change:
        return f"published the {now.name}, {published(now)}, as {now.merge_hash}"
    return f"published {published(now)} of {now.name} as {now.merge_hash}"


def discarded(outcome: Outcome) -> Iterator[str]:
    """What was deleted and what stays; or that something is left to be deleted."""
    now, removal = outcome.ingestion, outcome.removal
    if outcome.left:
        yield f"{now.name} is discarded, but not all of it is deleted: {outcome.left}"
        return
    yield f"discarded {now.name}: {len(removal.files):,} files deleted"
    yield from (f"kept {path}: {why}" for path, why in removal.kept.items())


def left(outcome: Outcome) -> str:
    """What is still to be done of a replay or a publication, "" for nothing."""
    if not outcome.left:
        return ""
    is_published = outcome.ingestion.state is State.PUBLISHED
    done = "published, but its branch is not deleted yet" if is_published else "recorded; the rest"
    return f"{done}: {outcome.left}"
