"""Restorations: a table's rows go back to those of an earlier commit, in place of all since."""

from collections.abc import Iterator

from functions.adapters.all import Adapters
from functions.adapters.nessie import UnknownBranch
from functions.model.commits import Commit
from functions.model.ingestion import Ingestion
from functions.model.merge_commit import published, tables
from lakegate.change import Change
from lakegate.errors import Permanent


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
        message = f"main lost a commit of the restoration: {gone.message}"
        raise Permanent("TABLE_MOVED", f"{message}\n{_again(change)}") from gone
    if seen != found:
        message = f"{change.table} changed on main since the rows to lose were shown"
        raise Permanent("TABLE_MOVED", f"{message}\n{_again(change)}")


def _again(change: Change) -> str:
    return f"Look again: `lakegate restore {change.table} --to {change.restores}`"


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
    return next(_targets(commit, table), "")


def _targets(commit: Commit, table: str) -> Iterator[str]:
    for each in published(commit):
        change = each.change(table) if table in tables(commit) else None
        if change and change.restores:
            yield change.restores
