"""What may be merged into main for an ingestion, and for a large group of them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Intent:
    """The branch and hash that may be merged into main for an ingestion."""

    branch: str
    hash: str


@dataclass(frozen=True)
class SharedIntent:
    """The ledger's item through which the members of a large group change their intent together.

    `revision` counts its writes; a closed one changes no more, as a member went another way.
    """

    id: str = ""
    revision: int = 0
    closed: bool = False

    @property
    def is_open(self) -> bool:
        """Return whether the members' intent can be changed by one write."""
        return bool(self.id) and not self.closed
