"""Takeovers: what another writer committed on a branch is done on main, once."""

from functions.adapters.all import Adapters
from functions.model import merge_commit
from lakegate.change import Change
from lakegate.errors import Permanent
from lakegate.landing import ID_PART


def require_untaken(adapters: Adapters, change: Change, ingestion: str) -> None:
    """Raise Permanent ALREADY_TAKEN if main has some of the commits by another ingestion.

    Ask after its branch was created: what main takes later conflicts with it. Main's log is read
    back to where the other writer's branch begins.
    """
    taken = change.takeover
    if not taken:
        return
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
