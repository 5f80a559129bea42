"""Decide on failed ingestions that people name by id: replay them, or publish them anyway."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from access.ingestions.identify import identified
from functions.adapters.all import Adapters
from functions.model import unreadable
from functions.model.ingestion import Ingestion

if TYPE_CHECKING:  # it imports Nessie's library: a second that help does not need
    from functions.operations.decisions.failed import Outcome


@dataclass(frozen=True)
class Subject:
    """The ingestion to decide about.

    `despite` is the full id of the newer version of its key beside which it may be published, ""
    if none is named.
    """

    ingestion: Ingestion
    despite: str = ""


def about(adapters: Adapters, identity: str, despite: str = "") -> Subject:
    """Return what the two ids, or their first characters, name. Raises as `identified` does."""
    newer = identified(adapters.ledger, despite).id if despite else ""
    return Subject(identified(adapters.ledger, identity), newer)


def replay(adapters: Adapters, subject: Subject, by: str, *, original: bool) -> "Outcome":
    """Run the job again; raises LakegateError as `failed.replay` does."""
    from functions.operations.decisions import failed

    return failed.replay(
        adapters, subject.ingestion, by=by, original=original, despite=subject.despite
    )


def publish(
    adapters: Adapters,
    subject: Subject,
    by: str,
    reason: str,
    *,
    null_unreadable: bool,
    confirm: Callable[[str], None],
) -> "Outcome":
    """Publish anyway; if rows could not be read, `confirm` what becomes of them first.

    `confirm` takes a sentence for people, and raises to stop. Raises LakegateError as
    `functions.operations.decisions.failed.publish_anyway` does.
    """
    from functions.operations.decisions import failed
    from functions.operations.decisions.preconditions import require_publishable
    from functions.pipeline.outcome.reports import report_of

    ingestion, despite = subject.ingestion, subject.despite
    require_publishable(adapters, ingestion, despite)
    report = report_of(adapters, ingestion)
    if notice := unreadable.named(report, null_unreadable=null_unreadable):
        confirm(notice)
    return failed.publish_anyway(
        adapters, ingestion, by, reason, despite=despite, null_unreadable=null_unreadable
    )
