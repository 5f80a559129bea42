"""Whether the rows of a table on main are those that were published, commit by commit.

Others may change the table too, so its total alone says nothing. Main's rows are the gains of all
commits that changed the table; of ours each gain must be the rows that the commit names.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from functions.finding import Finding
from functions.history import Commit
from functions.table_rows import DoubledFile, TableRows

RowsAt = Callable[[str], TableRows]


@dataclass(frozen=True)
class Change:
    """A commit on main that changed the table, and how many rows it says that it added.

    `claimed` is None where the commit is not ours: it may add and remove what it likes.
    """

    commit: Commit
    claimed: int | None = None


@dataclass(frozen=True)
class Gain:
    """By how many rows a commit changed the table; `claimed` is 0 where it is not ours."""

    commit: Commit
    rows: int
    claimed: int = 0


@dataclass(frozen=True)
class Balance:
    """A table on main, and where its rows come from.

    `others` are the commits of others that changed the number of rows, `wrong` those of ours whose
    gain is not what they claim. `unaccounted` is what is left when every commit has been looked at.
    """

    table: str
    rows: TableRows
    published: int
    others: tuple[Gain, ...] = ()
    wrong: tuple[Gain, ...] = ()
    unaccounted: int = 0
    doubled: tuple[DoubledFile, ...] = ()

    @property
    def gained_by_others(self) -> int:
        """The rows that others added, less those that they removed."""
        return sum(gain.rows for gain in self.others)

    @property
    def off(self) -> int:
        """How many rows main has too many, below zero: too few."""
        return self.rows.live - self.published - self.gained_by_others


def balance(
    table: str, head: str, changes: Sequence[Change], rows_at: RowsAt, *, thorough: bool = False
) -> Balance:
    """Hold a table's rows at main's `head` against all that changed it, the oldest change first.

    `rows_at` reads the table at a commit. It is asked once for the head and twice for each commit
    of others; of ours only where the total is wrong, and then for few: the commits between two of
    others are halved until those that are wrong stand alone. Two errors of ours that cancel each
    other out are found only when `thorough`, which asks for every commit.
    """
    now = rows_at(head)
    others = [_gain(change, rows_at) for change in changes if change.claimed is None]
    published = _claimed(changes)
    off = now.live - published - sum(gain.rows for gain in others)
    wrong = list(_wrong(changes, rows_at, thorough)) if off or thorough else []
    return Balance(
        table=table,
        rows=now,
        published=published,
        others=tuple(gain for gain in others if gain.rows),
        wrong=tuple(wrong),
        unaccounted=off - sum(gain.rows - gain.claimed for gain in wrong),
    )


def wrong_rows(balance: Balance) -> Iterator[Finding]:
    """What is wrong with a table's rows."""
    table = balance.table
    for gain in balance.wrong:
        message = (
            f"commit {gain.commit.hash} ({gain.commit.message}) names {gain.claimed:,} rows, but "
            f"{table} has {gain.rows:+,} rows since: {_off(gain.rows - gain.claimed)}"
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
            f"{table} lists the data file {file.path} {file.times} times: readers see its "
            f"{file.rows:,} rows {file.times} times"
        )
        yield Finding("DOUBLED_FILE", message, table)


def changed_by_others(balance: Balance) -> Iterator[Finding]:
    """What others did to a table's rows, which they may."""
    for gain in balance.others:
        commit = gain.commit
        did = f"added {gain.rows:,} rows to" if gain.rows > 0 else f"removed {-gain.rows:,} rows of"
        message = (
            f"{commit.author or 'somebody'} {did} {balance.table} at {commit.time}, past Lakegate: "
            f"commit {commit.hash} ({commit.message})"
        )
        yield Finding("CHANGED_BY_OTHERS", message, balance.table, commit=commit.hash)
    if balance.rows.equality_deletes:
        message = (
            f"{balance.table} has {balance.rows.equality_deletes:,} equality deletes: how many "
            "rows they hide from readers is not counted here"
        )
        yield Finding("EQUALITY_DELETES", message, balance.table)


def _off(rows: int) -> str:
    return f"{rows:,} too many" if rows > 0 else f"{-rows:,} missing"


def _wrong(changes: Sequence[Change], rows_at: RowsAt, thorough: bool) -> Iterator[Gain]:
    for foreign, run in groupby(changes, key=lambda change: change.claimed is None):
        if not foreign:
            yield from _wrong_of_ours(list(run), rows_at, thorough)


def _wrong_of_ours(run: Sequence[Change], rows_at: RowsAt, thorough: bool) -> Iterator[Gain]:
    """Those commits of a run of ours, none of others' between them, that are wrong."""
    gained = rows_at(run[-1].commit.hash).live - rows_at(run[0].commit.parent).live
    if len(run) == 1:
        if gained != _claimed(run):
            yield Gain(run[0].commit, gained, _claimed(run))
    elif thorough or gained != _claimed(run):
        half = len(run) // 2
        yield from _wrong_of_ours(run[:half], rows_at, thorough)
        yield from _wrong_of_ours(run[half:], rows_at, thorough)


def _gain(change: Change, rows_at: RowsAt) -> Gain:
    commit = change.commit
    return Gain(commit, rows_at(commit.hash).live - rows_at(commit.parent).live)


def _claimed(changes: Sequence[Change]) -> int:
    return sum(change.claimed or 0 for change in changes)
