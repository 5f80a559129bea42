"""What people decided about one ingestion, and what they did to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

_MOST_ACTIONS = 20


@dataclass(frozen=True)
class Approval:
    """The decision to publish an ingestion although its audit failed.

    `checks` are the ids of the failed checks that it covers, `at` is when it was made.
    """

    by: str
    reason: str
    at: str
    checks: tuple[str, ...]


@dataclass(frozen=True)
class Action:
    """An action on an attempt, by somebody who gave a name: replay, publish or discard."""

    what: str
    by: str
    at: str
    attempt: int


@dataclass(frozen=True)
class Mends:
    """What a mended file is made of: a rejected ingestion's file, and corrected rows.

    `file` is the name of the file with these rows, `by` who gave it, "" if that was not said.
    """

    ingestion: str
    file: str
    by: str = ""


@dataclass(frozen=True)
class Decisions:
    """The decisions on one ingestion; without any, those of a file that just landed.

    `despite` is the newer version beside which it is to be published. With `null_unreadable` rows
    with unparseable cells are published, with nulls. A `discarded` ingestion keeps its state;
    `branches_to_delete` maps its branches to their hashes until they are deleted, with the files
    that only they reach. With `mending` a mended file lands, or is about to, as a newer version of
    its key. `actions` are the last ones.
    """

    approval: Approval | None = None
    despite: str = ""
    null_unreadable: bool = False
    discarded: bool = False
    mending: bool = False
    branches_to_delete: Mapping[str, str] = field(default_factory=dict)
    actions: tuple[Action, ...] = ()

    @property
    def approved_by(self) -> str:
        """Return who approved its publishing although its audit failed, "" for nobody."""
        return self.approval.by if self.approval else ""

    def acted(self, what: str, by: str, at: str, attempt: int) -> "Decisions":
        """Return them with an action by somebody; unchanged without a name."""
        if not by:
            return self
        done = (*self.actions, Action(what, by, at, attempt))
        return replace(self, actions=done[-_MOST_ACTIONS:])
