"""Takeovers: what another writer committed on a branch is done on main, once."""

from functions.adapters.all import Adapters
from functions.adapters.nessie import UnknownBranch
from functions.model import merge_commit
from lakegate.errors import Permanent
from lakegate.job.change import Change, Takeover
from lakegate.job.landing import ID_PART


def require_takeable(adapters: Adapters, change: Change, ingestion: str) -> None:
    """Raise Permanent if main has some of a takeover's commits by another one, or Nessie has none.

    Ask after its branch was created: what main takes later conflicts with it. Main's log is read
    back to where the other writer's branch begins.
    """
    taken = change.takeover
    if not taken:
        return
    _require_there(adapters, taken, change.table)
    for commit in adapters.catalog.log():
        if commit.hash == taken.since:
            return
        named = merge_commit.published(commit)
        for each in named if change.table in merge_commit.tables(commit) else ():
            requested = each.change(change.table)
            earlier = requested.takeover if requested else None
            if earlier and earlier.first == taken.first and each.id != ingestion:
                message = (
                    f"commits of {taken.branch} are on main already: {commit.hash[:ID_PART]} "
                    f"took them over to {earlier.head[:ID_PART]}\n"
                    "Write what is missing on a new branch off main, and gate that."
                )
                raise Permanent("ALREADY_TAKEN", message)


def _require_there(adapters: Adapters, taken: Takeover, table: str) -> None:
    """Raise Permanent COMMITS_GONE if Nessie no longer has them."""
    try:
        for at in (taken.since, taken.head):
            adapters.catalog.metadata(at, table)
    except UnknownBranch as gone:
        message = (
            f"Nessie lost commits of {taken.branch} ({gone.message})\n"
            "Write the rows again on a new branch off main, and gate that."
        )
        raise Permanent("COMMITS_GONE", message) from gone
