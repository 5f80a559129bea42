"""The ledger's list of compactions: whatever else looks like one was not begun by Lakegate."""

import json

from functions.adapters.all import Adapters
from functions.adapters.ledger.notes import Moved
from functions.model.commits import Commit
from functions.model.merge_commit import UPKEEP as PROPERTY
from functions.model.notes.compactions import Compaction
from lakegate.job.upkeep import UPKEEP

_TRIES = 5


def advance(adapters: Adapters, old: Compaction, new: Compaction | None) -> None:
    """Save the next step of a compaction, None to forget it.

    Raise Moved if another process changed it, or ended it, meanwhile.
    """
    for _ in range(_TRIES):
        known = adapters.ledger.compactions()
        if old not in known.under_way:
            break
        try:
            adapters.ledger.save_compactions(known.exchanged(old, new))
        except Moved:
            continue  # by a step of another compaction, as a rule
        return
    raise Moved([old.id])


def strangers(adapters: Adapters) -> list[str]:
    """Return the branches that are named as compactions' and that the ledger does not know.

    The branches are listed first: of each that Lakegate creates, the ledger knows before.
    """
    there = adapters.catalog.branches(UPKEEP)
    if not there:
        return []
    known = {each.branch for each in adapters.ledger.compactions().under_way}
    unknown = set(there) - known
    still = adapters.catalog.branches(UPKEEP) if unknown else []  # one may have ended meanwhile
    return [name for name in still if name in unknown]


def delete_strangers(adapters: Adapters) -> list[str]:
    """Delete the branches of `strangers`, which are never published; return them."""
    branches = strangers(adapters)
    for branch in branches:
        adapters.catalog.delete_branch(branch)
    return branches


def branch_of(commit: Commit) -> str:
    """Return the branch that a commit of upkeep names, "" for another text."""
    try:
        return str(json.loads(commit.properties[PROPERTY])["branch"])
    except (ValueError, KeyError, TypeError):
        return ""
