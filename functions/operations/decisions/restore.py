"""Have a table's rows go back to those of an earlier commit of main: find it, and ask for that."""

import re
from dataclasses import dataclass

from functions.adapters.all import Adapters
from functions.model.commits import MAIN, Commit
from functions.model.ingestion import Ingestion
from functions.pipeline.outcome.restorations import require_unmoved
from functions.pipeline.start.intake import ask, require_name
from lakegate.errors import LakegateError
from lakegate.job.change import Change, restoration
from lakegate.job.landing import ID_PART

_COMMIT = re.compile(r"[0-9a-f]{8,64}")


@dataclass(frozen=True)
class Undo:
    """The commit `to` which a table goes back, in place of its state at main's commit `last`.

    `commits` is how many commits of the table are undone.
    """

    table: str
    to: Commit
    last: Commit
    commits: int

    def change(self, by: str = "", reason: str = "") -> Change:
        """Return the request for it."""
        return restoration(self.table, self.to.hash, self.last.hash, by, reason)


def is_commit(text: str) -> bool:
    """Return whether a text is a commit's hash, or the first characters of one."""
    return bool(_COMMIT.fullmatch(text))


def undo(adapters: Adapters, table: str, to: str) -> Undo:
    """Return how a table goes back to a commit of main, or to main's newest commit at a time.

    `to` is a hash, the first characters of one (8 at least), or a time as `times.text` writes it.
    Raise LakegateError where main has no such commit, or the table did not exist then or has not
    changed since, or upkeep may have deleted that state.
    """
    since: list[Commit] = []
    for commit, names in adapters.catalog.history():
        if commit.hash.startswith(to) if is_commit(to) else commit.at <= to:
            break
        if table in names:
            since.append(commit)
    else:
        raise _not_on_main(table, to)
    if not adapters.catalog.metadata(commit.hash, table):
        raise _missing(table, commit, since)
    if not since:
        message = f"{table} has not changed on main since {_place(commit)}\nNothing is to be done."
        raise LakegateError("NOTHING_TO_RESTORE", message)
    _require_kept(adapters, table, since[-1].at, commit)
    return Undo(table, commit, since[0], len(since))


def restore(adapters: Adapters, wanted: Undo, by: str, reason: str) -> Ingestion:
    """Request it; return the request's ingestion. The same request again continues the first one.

    Raise LakegateError if main changed the table since `wanted` was found.
    """
    require_name(by, reason)
    change = wanted.change(by, reason)
    require_unmoved(adapters, change, adapters.catalog.head(MAIN))
    return ask(adapters, change)


def _place(commit: Commit) -> str:
    return f"commit {commit.hash[:ID_PART]} of {commit.at}"


def _not_on_main(table: str, to: str) -> LakegateError:
    what = f"commit {to}" if is_commit(to) else f"state of {to}: its log begins later"
    remedy = f"`lakegate log {table}` lists the commits of the table."
    return LakegateError("NOT_ON_MAIN", f"main has no {what}\n{remedy}")


def _missing(table: str, commit: Commit, since: list[Commit]) -> LakegateError:
    first = f"its first commit since then is {_place(since[-1])}" if since else "it has none now"
    message = f"main had no {table} at {_place(commit)}\nNothing is to be done: {first}."
    return LakegateError("NO_TABLE_THEN", message)


def _require_kept(adapters: Adapters, table: str, left: str, commit: Commit) -> None:
    """Raise LakegateError TOO_OLD if upkeep may have deleted the state that the table `left`."""
    kept_since = adapters.ledger.upkeep().kept_since
    if left < kept_since:
        message = (
            f"upkeep has deleted what {table} was at {_place(commit)}\n"
            f"The oldest that it keeps: `lakegate restore {table} --to {kept_since} --reason TEXT`"
        )
        raise LakegateError("TOO_OLD", message)
