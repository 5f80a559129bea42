"""What a deployment's catalog has before its first file: a first commit, and the ops tables."""

from contextlib import suppress
from dataclasses import dataclass

from functions.adapters.all import Adapters
from functions.adapters.nessie import MAIN, MergeConflict, SetBack
from lakegate.audit_tables import RESULTS, TABLES, HistoryTable
from lakegate.errors import Transient
from lakegate.landing import fresh_branch

SEEDING = fresh_branch(RESULTS.name, "seed", "")  # how the names of its branches begin
_MOST_TRIES = 5


@dataclass(frozen=True)
class Seeded:
    """What was done: whether main got its first commit, and the names of the tables it got."""

    first_commit: bool
    tables: tuple[str, ...]


def seed(adapters: Adapters) -> Seeded:
    """Give main what it lacks; safe to do again, and by two at once.

    Raises Permanent where another table has the name of one of these.
    """
    began = adapters.catalog.begin(RESULTS.name.partition(".")[0])
    return Seeded(began, _tables(adapters))


def is_seeded(adapters: Adapters) -> bool:
    """Whether main has all that it gets."""
    return not _lacking(adapters, adapters.catalog.head(MAIN))


def _tables(adapters: Adapters) -> tuple[str, ...]:
    for _ in range(_MOST_TRIES):
        if is_seeded(adapters):
            return ()
        with suppress(MergeConflict, SetBack):  # somebody else makes them
            return _make(adapters)
    message = f"main moved {_MOST_TRIES} times while its ops tables were made; try again"
    raise Transient("TABLE_BUSY", message)


def _make(adapters: Adapters) -> tuple[str, ...]:
    """Make what main lacks on a branch, and merge it: main gets all at once, and nothing twice."""
    branch = f"{SEEDING}{adapters.token()}"
    base = adapters.catalog.create_branch(branch)  # where that fails, it is no branch of this one's
    try:
        lacking = _lacking(adapters, base)
        adapters.tables().make(lacking, adapters.settings.lake_bucket, branch)
        names = tuple(table.name for table in lacking)
        message = f"Make {' and '.join(names)}"
        adapters.catalog.merge(branch, adapters.catalog.head(branch), base, message, {})
    finally:
        adapters.catalog.delete_branch(branch)
    return names


def _lacking(adapters: Adapters, at: str) -> list[HistoryTable]:
    return [table for table in TABLES if not adapters.catalog.metadata(at, table.name)]
