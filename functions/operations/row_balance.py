"""Whether the rows of a table on main are those that were published, commit by commit.

Others may change the table too, so its total alone says nothing. Main's rows are the gains of all
commits that changed the table; of ours each gain must be the rows that the commit names, and the
data files that it added those that its audit reports name.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from functions.adapters.iceberg_files import DoubledFile, TableChange, TableRows
from functions.model.checkpoint import TableCount
from functions.model.commits import Commit

# Something that reconcile found.


@dataclass(frozen=True)
class Finding:
    """Something to tell people; `table`, `ingestion` and `commit` are "" where it has none."""

    code: str
    message: str
    table: str = ""
    ingestion: str = ""
    commit: str = ""


_MOST_NAMED = 3


@dataclass(frozen=True)
class Gain:
    """By how many rows a commit changed the table; `claimed` is 0 where it is not ours.

    `added` and `removed` count data files.
    """

    commit: Commit
    rows: int
    claimed: int = 0
    added: int = 0
    removed: int = 0


@dataclass
class Tally:
    """What the commits that were looked at made of a table; those that are right are only summed.

    `reached` is what commits of others and ours made of its rows, all in all.
    """

    published: int = 0
    reached: int = 0
    by_others: int = 0
    others: list[Gain] = field(default_factory=list)
    wrong: list[Gain] = field(default_factory=list)

    def add(self, commit: Commit, claimed: int, change: TableChange) -> None:
        """Count a commit of ours."""
        self.published += claimed
        self.reached += change.rows
        if change.rows != claimed:
            self.wrong.append(Gain(commit, change.rows, claimed))

    def add_others(self, commit: Commit, change: TableChange) -> None:
        """Count a commit of somebody else's."""
        self.reached += change.rows
        self.by_others += change.rows
        if change.rows or change.added or change.removed:
            files = sum(change.added.values()), sum(change.removed.values())
            self.others.append(Gain(commit, change.rows, 0, *files))


@dataclass(frozen=True)
class Balance:
    """A table on main, and where its rows come from.

    `others` are the commits of others that changed it since the checkpoint, `wrong` those of ours
    whose gain is not what they claim, `gained_by_others` the rows that others ever added less those
    that they removed. `unaccounted` is what is left when every commit has been looked at. `gone`
    are data files that it lists and that are not there.
    """

    table: str
    rows: TableRows
    published: int
    gained_by_others: int = 0
    others: tuple[Gain, ...] = ()
    wrong: tuple[Gain, ...] = ()
    unaccounted: int = 0
    doubled: tuple[DoubledFile, ...] = ()
    gone: tuple[str, ...] = ()

    @property
    def off(self) -> int:
        """How many rows main has too many, below zero: too few."""
        return self.rows.live - self.published - self.gained_by_others


def balance(table: str, rows: TableRows, base: TableCount, tallies: Sequence[Tally]) -> Balance:
    """Hold a table's rows on main against what it had at `base`, and all commits since.

    The tallies begin with the oldest, and each of them counts its commits from the newest back.
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
    table: str, commit: Commit, change: TableChange, reported: Mapping[str, int]
) -> Iterator[Finding]:
    """Hold the data files that a commit of ours added against those that its reports name."""
    added, expected = Counter(change.added), Counter(reported)
    told = (
        ("UNREPORTED_FILES", "added", "which no audit report of it names", added - expected),
        ("MISSING_FILES", "did not add", "which its audit reports name", expected - added),
    )
    for code, did, why, paths in told:
        if paths:
            named = ", ".join(sorted(paths)[:_MOST_NAMED])
            more = f" and {len(paths) - _MOST_NAMED:,} more" if len(paths) > _MOST_NAMED else ""
            message = (
                f"commit {commit.hash} ({commit.message}) {did} to {table} {named}{more}, {why}"
            )
            yield Finding(code, message, table, commit=commit.hash)


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
    for path in balance.gone:
        message = (
            f"{table} lists the data file {path}, which is not there: no reader can read its rows. "
            "Where the bucket keeps versions, remove the object's delete marker"
        )
        yield Finding("FILE_GONE", message, table)


def changed_by_others(balance: Balance) -> Iterator[Finding]:
    """What others did to a table's rows, which they may."""
    for gain in balance.others:
        commit = gain.commit
        message = (
            f"{commit.author or 'somebody'} {_did(gain)} {balance.table} at {commit.time}, past "
            f"Lakegate: commit {commit.hash} ({commit.message})"
        )
        yield Finding("CHANGED_BY_OTHERS", message, balance.table, commit=commit.hash)
    if balance.rows.equality_deletes:
        message = (
            f"{balance.table} has {balance.rows.equality_deletes:,} equality deletes: how many "
            "rows they hide from readers is not counted here"
        )
        yield Finding("EQUALITY_DELETES", message, balance.table)


def _did(gain: Gain) -> str:
    if gain.rows:
        return (
            f"added {gain.rows:,} rows to" if gain.rows > 0 else f"removed {-gain.rows:,} rows of"
        )
    return f"exchanged {gain.removed:,} data files for {gain.added:,} of as many rows in"


def _off(rows: int) -> str:
    return f"{rows:,} too many" if rows > 0 else f"{-rows:,} missing"
