"""Restorations: a table's rows go back to those of an earlier commit, in place of all since."""

from collections.abc import Iterable

from functions.adapters.all import Adapters
from functions.adapters.nessie import UnknownBranch
from functions.model import merge_commit
from functions.model.commits import Commit
from functions.model.ingestion import State
from lakegate.errors import LakegateError, Permanent
from lakegate.job.change import Change
from lakegate.job.landing import ID_PART, ingestion_id


def require_unmoved(adapters: Adapters, change: Change, at: str) -> None:
    """Raise Permanent TABLE_MOVED if a restoration was asked for another state than that at `at`.

    What was published since would be lost, and whoever asked has not seen it.
    """
    if not change.replaces:
        return
    try:
        seen, now = (
            adapters.catalog.metadata(each, change.table) for each in (change.replaces, at)
        )
    except UnknownBranch as gone:
        raise _moved(change, f"main lost a commit of the restoration ({gone.message})") from gone
    if seen != now:
        raise _moved(change, f"{change.table} changed on main since the rows to lose were shown")


def _moved(change: Change, why: str) -> Permanent:
    again = f"lakegate restore {change.table} --to {change.restores[:ID_PART]} --reason TEXT"
    return Permanent("TABLE_MOVED", f"{why}: look again by `{again}`")


def require_not_undone(adapters: Adapters, change: Change) -> None:
    """Raise LakegateError UNDONE if it was done before, and a restoration undid it."""
    id_ = ingestion_id(change.landed(adapters.lake.bucket))
    done = [each.id for each in adapters.ledger.together([id_]) if each.state is State.PUBLISHED]
    for commit in undoing(adapters, change.table, done).values():
        remedy = "A token is for one change: give none."
        if change.retracts:
            remedy = (
                f"A file is retracted once: remove its rows by `lakegate change {change.table}`."
            )
        if change.takeover:
            remedy = "A branch is taken over once: write its rows again on a new branch off main."
        message = f"this was done before, and main's commit {commit.hash} undid it\n{remedy}"
        raise LakegateError("UNDONE", message)


def undoing(adapters: Adapters, table: str, published: Iterable[str]) -> dict[str, Commit]:
    """Return which of the published ingestions are undone, and by which of main's commits.

    They are named by their ids. The commit restored the table to before that, and it was not
    restored to after that since. Main's log is read back to the first of them, once, and only if
    the table was ever changed on request.
    """
    wanted, undone = set(published), dict[str, Commit]()
    if not wanted or next(adapters.lake.changes(table), None) is None:
        return undone
    skipped_by, until = None, ""  # the restoration whose past is not the table's, and its end
    for commit in adapters.catalog.log():
        if commit.hash == until:
            skipped_by, until = None, ""
        named = wanted.intersection(each.id for each in merge_commit.published(commit))
        wanted -= named
        if skipped_by:
            undone |= dict.fromkeys(named, skipped_by)
        elif restored := _restored(commit, table):
            skipped_by, until = commit, restored
        if not wanted:
            break
    return undone


def _restored(commit: Commit, table: str) -> str:
    """Return the commit to which a commit restored the table, "" for others."""
    named = merge_commit.published(commit) if table in merge_commit.tables(commit) else ()
    changes = filter(None, (each.change(table) for each in named))
    return next((change.restores for change in changes if change.restores), "")
