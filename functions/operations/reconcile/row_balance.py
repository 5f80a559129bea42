"""Check, commit by commit, that a table's rows on main are those that were published.

Other writers may change the table too, so its total alone proves nothing. Main's rows are the sum
of the changes of all commits. A commit of Lakegate must add the rows that it names, and the data
files that its audit reports name.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from functions.model.commits import Commit
from functions.model.notes.checkpoint import TableCount
from lakegate.text import count

if TYPE_CHECKING:  # it imports pyiceberg: a second that help does not need
    from functions.adapters.iceberg.files import DoubledFile, TableChange, TableRows


@dataclass(frozen=True)
class Finding:
    """One mismatch; `table`, `ingestion` and `commit` are "" where it has none."""

    code: str
    message: str
    table: str = ""
    ingestion: str = ""
    commit: str = ""


_MOST_NAMED = 3


@dataclass(frozen=True)
class Gain:
    """The rows by which a commit changed the table; `claimed` is 0 for another writer's commit.

    `added` and `removed` count data files.
    """

    commit: Commit
    rows: int
    claimed: int = 0
    added: int = 0
    removed: int = 0


@dataclass
class Tally:
    """The sums of a table's commits, and the commits that need a finding.

    `reached` is the total change of rows by all commits.
    """

    published: int = 0
    reached: int = 0
    by_others: int = 0
    others: list[Gain] = field(default_factory=list)
    wrong: list[Gain] = field(default_factory=list)

    def add(self, commit: Commit, claimed: int, change: "TableChange") -> None:
        """Count a commit of Lakegate."""
        self.published += claimed
        self.reached += change.rows
        if abs(change.rows - claimed) > change.hidden:
            self.wrong.append(Gain(commit, change.rows, claimed))

    def add_others(self, commit: Commit, change: "TableChange") -> None:
        """Count a commit of another writer."""
        self.reached += change.rows
        self.by_others += change.rows
        files = sum(change.added.values()), sum(change.removed.values())
        self.others.append(Gain(commit, change.rows, 0, *files))


@dataclass(frozen=True)
class Balance:
    """A table on main, and the origin of its rows.

    `others` are other writers' commits since the checkpoint; `wrong` are commits of Lakegate whose
    change differs from their claim. `gained_by_others` is the sum of all changes by other writers,
    `unaccounted` the rows that no commit explains. `gone` are listed data files that do not exist.
    """

    table: str
    rows: "TableRows"
    published: int
    gained_by_others: int = 0
    others: tuple[Gain, ...] = ()
    wrong: tuple[Gain, ...] = ()
    unaccounted: int = 0
    doubled: "tuple[DoubledFile, ...]" = ()
    gone: tuple[str, ...] = ()

    @property
    def off(self) -> int:
        """Return how many rows main has too many; negative for missing rows."""
        return self.rows.live - self.published - self.gained_by_others


def balance(table: str, rows: "TableRows", base: TableCount, tallies: Sequence[Tally]) -> Balance:
    """Compare a table's rows on main with its counts at `base` and all commits since.

    Tallies are in order, oldest first; each counts its commits from the newest back.
    """
    return Balance(
        table=table,
        rows=rows,
        published=base.published + sum(each.published for each in tallies),
        gained_by_others=base.by_others + sum(each.by_others for each in tallies),
        others=tuple(gain for each in tallies for gain in reversed(each.others)),
        wrong=tuple(gain for each in tallies for gain in reversed(each.wrong)),
        unaccounted=rows.live - base.rows - sum(each.reached for each in tallies),
    )


def wrong_files(
    table: str, commit: Commit, change: "TableChange", reported: Mapping[str, int]
) -> Iterator[Finding]:
    """Compare the data files that a commit added with those that its reports name."""
    added, expected = Counter(change.added), Counter(reported)
    compared = (
        ("UNREPORTED_FILES", "added", "which none of its audit reports names", added - expected),
        ("MISSING_FILES", "did not add", "which its audit reports name", expected - added),
    )
    for code, did, why, paths in compared:
        if paths:
            named = ", ".join(sorted(paths)[:_MOST_NAMED])
            more = f" and {len(paths) - _MOST_NAMED:,} more" if len(paths) > _MOST_NAMED else ""
            message = (
                f"commit {commit.hash} ({commit.message}) {did} to {table} {named}{more}, {why}"
            )
            yield Finding(code, message, table, commit=commit.hash)


def wrong_rows(balance: Balance) -> Iterator[Finding]:
    """Yield the problems of a table's rows."""
    table = balance.table
    for gain in balance.wrong:
        message = (
            f"commit {gain.commit.hash} ({gain.commit.message}) names {gain.claimed:,} rows, but "
            f"changed {table} by {gain.rows:+,} rows: {_off(gain.rows - gain.claimed)}"
        )
        yield Finding("WRONG_GAIN", message, table, commit=gain.commit.hash)
    if balance.unaccounted:
        message = (
            f"{table} has {balance.rows.live:,} rows on main: {_off(balance.unaccounted)}, and no "
            "commit of main's log accounts for that"
        )
        yield Finding("UNACCOUNTED_ROWS", message, table)
    for file in balance.doubled:
        message = (
            f"{table} lists the data file {file.path} {file.times} times: queries return its "
            f"{count(file.rows, 'row')} {file.times} times"
        )
        yield Finding("DOUBLED_FILE", message, table)
    for path in balance.gone:
        message = (
            f"{table} lists the data file {path}, which does not exist, so queries fail. If the "
            "bucket keeps versions, remove the object's delete marker"
        )
        yield Finding("FILE_GONE", message, table)


def changed_by_others(balance: Balance) -> Iterator[Finding]:
    """Yield remarks on other writers' changes of a table, which are allowed."""
    for gain in balance.others:
        commit = gain.commit
        message = (
            f"{commit.author or 'an unknown author'} {_did(gain)} {balance.table} at {commit.time} "
            f"without Lakegate: commit {commit.hash} ({commit.message})"
        )
        yield Finding("CHANGED_BY_OTHERS", message, balance.table, commit=commit.hash)
    if balance.rows.equality_deletes:
        message = (
            f"{balance.table} has {balance.rows.equality_deletes:,} equality deletes: the rows "
            "that they hide are not counted here"
        )
        yield Finding("EQUALITY_DELETES", message, balance.table)


def _did(gain: Gain) -> str:
    if gain.rows > 0:
        return f"added {count(gain.rows, 'row')} to"
    if gain.rows < 0:
        return f"removed {count(-gain.rows, 'row')} of"
    if gain.removed or gain.added:
        return f"replaced {gain.removed:,} data files by {gain.added:,} with as many rows in"
    return "changed columns, properties or delete files, and no data file, of"


def _off(rows: int) -> str:
    return f"{rows:,} too many" if rows > 0 else f"{-rows:,} missing"
