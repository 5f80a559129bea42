"""Restorations: a table's rows go back to those of an earlier commit, in place of all since."""

from functions.adapters.all import Adapters
from functions.adapters.nessie import UnknownBranch
from functions.model.commits import Commit
from functions.model.ingestion import Ingestion
from functions.model.merge_commit import published, tables
from lakegate.change import Change
from lakegate.errors import Permanent
from lakegate.landing import ID_PART


def require_unmoved(adapters: Adapters, change: Change, at: str) -> None:
    """Raise Permanent TABLE_MOVED if a restoration was asked for another state than that at `at`.

    What was published since would be lost, and whoever asked has not seen it.
    """
    if not change.replaces:
        return
    try:
        seen, found = (
            adapters.catalog.metadata(each, change.table) for each in (change.replaces, at)
        )
    except UnknownBranch as gone:
        raise _moved(change, f"main lost a commit of the restoration ({gone.message})") from gone
    if seen != found:
        raise _moved(change, f"{change.table} changed on main since the rows to lose were shown")


def _moved(change: Change, why: str) -> Permanent:
    again = f"lakegate restore {change.table} --to {change.restores[:ID_PART]}"
    return Permanent("TABLE_MOVED", f"{why}: look again by `{again}`")


def undoing(adapters: Adapters, ingestion: Ingestion) -> Commit | None:
    """Return main's commit that restored the table of a published ingestion to before that.

    None if there is none, or if the table was restored to after that since. Main's log is read back
    to where the ingestion was published, and only if the table was ever changed on request.
    """
    if next(adapters.lake.changes(ingestion.table), None) is None:
        return None
    skipped_by, until = None, ""  # the restoration whose past is not the table's, and its end
    for commit in adapters.catalog.log():
        if commit.hash == until:
            skipped_by, until = None, ""
        if any(each.id == ingestion.id for each in published(commit)):
            return skipped_by
        if commit.hash == ingestion.base_hash:
            return None
        if not until and (restored := _restored(commit, ingestion.table)):
            skipped_by, until = commit, restored
    return None


def _restored(commit: Commit, table: str) -> str:
    """Return the commit to which a commit restored the table, "" for others."""
    named = published(commit) if table in tables(commit) else ()
    changes = filter(None, (each.change(table) for each in named))
    return next((change.restores for change in changes if change.restores), "")
