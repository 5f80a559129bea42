"""The state of an ingestion as people see it.

The ledger keeps that a file was rejected even after somebody discarded it or a newer version
superseded it. People ask what is left to decide: to them it is discarded, or superseded.
"""

from enum import StrEnum

from functions.model.ingestion import Ingestion
from functions.model.ingestion_summary import IngestionSummary


class ShownState(StrEnum):
    """A state as people see it, in the order of an ingestion's life."""

    LANDED = "landed"
    BRANCHED = "branched"
    SUBMITTED = "submitted"
    AUDITED = "audited"
    PUBLISHED = "published"
    REJECTED = "rejected"
    ERRORED = "errored"
    IGNORED = "ignored"
    DISCARDED = "discarded"
    SUPERSEDED = "superseded"

    @classmethod
    def of(cls, each: Ingestion | IngestionSummary) -> "ShownState":
        """Return the state of an ingestion; rejected and errored ones wait for a decision."""
        if _summary(each).discarded:
            return cls.DISCARDED
        if each.superseded_by:
            return cls.SUPERSEDED
        return cls(each.state.value)


def is_approved(each: Ingestion | IngestionSummary) -> bool:
    """Return whether it is published because somebody approved it, although its audit failed."""
    return ShownState.of(each) is ShownState.PUBLISHED and bool(_summary(each).approved_by)


def state_words(each: Ingestion | IngestionSummary) -> str:
    """Return its state with who approved it: `published (approved by Ada)`."""
    approval = f" (approved by {_summary(each).approved_by})" if is_approved(each) else ""
    return f"{ShownState.of(each)}{approval}"


def _summary(each: Ingestion | IngestionSummary) -> IngestionSummary:
    return IngestionSummary.of(each) if isinstance(each, Ingestion) else each
