"""Main's commits of a table."""

from dataclasses import dataclass
from itertools import islice

from functions.adapters.all import Adapters
from functions.model.commits import Commit
from functions.model.merge_commit import Published, gains, published
from lakegate.errors import LakegateError


@dataclass(frozen=True)
class TableCommit:
    """A commit on main that changed a table, and what it published.

    `time` is ISO 8601 in UTC. `rows` is by how many the table grew, None if others wrote it.
    """

    hash: str
    time: str
    author: str
    message: str
    rows: int | None
    ingestions: tuple[Published, ...] = ()

    @classmethod
    def of(cls, commit: Commit, table: str) -> "TableCommit":
        """Return what a commit says of one of its tables."""
        rows, members = gains(commit).get(table), tuple(published(commit))
        return cls(commit.hash, commit.time, commit.author, commit.message, rows, members)


def commits(adapters: Adapters, table: str, limit: int) -> list[TableCommit]:
    """Return main's last commits that changed a table. Raises LakegateError NO_COMMITS."""
    history = adapters.catalog.history()
    latest = islice((commit for commit, names in history if table in names), limit)
    if listed := [TableCommit.of(commit, table) for commit in latest]:
        return listed
    message = f"main has no commit of {table}\nList the tables with `lakegate tables`."
    raise LakegateError("NO_COMMITS", message)
