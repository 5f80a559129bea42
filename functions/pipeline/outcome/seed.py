"""Give a new catalog its first commit on main, and the ops tables."""

from dataclasses import dataclass
from functools import partial

from functions.adapters.all import Adapters
from functions.adapters.nessie import MAIN
from functions.pipeline.outcome.own_commit import merge_fresh_branch
from lakegate.audit.audit_tables import RESULTS, TABLES, HistoryTable
from lakegate.job.landing import fresh_branch

SEEDING = fresh_branch(RESULTS.name, "seed", "")  # how the names of its branches begin


@dataclass(frozen=True)
class Seeded:
    """The result: whether main got its first commit, and the names of the tables it got."""

    first_commit: bool
    tables: tuple[str, ...]


def seed(adapters: Adapters) -> Seeded:
    """Give main what it lacks; repeating it is safe, also by two processes at once.

    Raise Permanent if another table has one of these names.
    """
    began = adapters.catalog.begin(RESULTS.name.partition(".")[0])
    if is_seeded(adapters):
        return Seeded(began, ())
    busy = "main moved on each time that its ops tables were made; try again"
    return Seeded(began, merge_fresh_branch(adapters, SEEDING, partial(_make, adapters), busy))


def is_seeded(adapters: Adapters) -> bool:
    """Return whether main has all of it."""
    return not _lacking(adapters, adapters.catalog.head(MAIN))


def _make(adapters: Adapters, branch: str, base: str) -> tuple[str, ...]:
    """Make the tables that main lacks on a branch and merge it, so that main gets all at once."""
    lacking = _lacking(adapters, base)
    if lacking:
        adapters.tables().make(lacking, adapters.settings.lake_bucket, branch)
        message = f"Make {' and '.join(table.name for table in lacking)}"
        adapters.catalog.merge(branch, adapters.catalog.head(branch), base, message, {})
    return tuple(table.name for table in lacking)


def _lacking(adapters: Adapters, at: str) -> list[HistoryTable]:
    return [table for table in TABLES if not adapters.catalog.metadata(at, table.name)]
