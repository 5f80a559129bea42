"""A table: rows over time, main's commits, checks passed and failed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

import duckdb

from functions.model.commits import Commit
from functions.model.merge_commit import Published, gains, published, tables
from lakegate import times

_CHECKS_DAYS = 30
_BY_DAY = """
    SELECT strftime(run_ts, '%Y-%m-%d') AS day, status, count(*) AS checks
    FROM results WHERE check_id <> 'run' GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True)
class Entry:
    """A commit on main that published rows of the table.

    The table grew by `gained` rows to `after`. `first` is the id of one of the published
    ingestions; `approved_by` is the person who approved them despite a failed audit, "" if it
    passed.
    """

    at: str
    message: str
    hash: str
    gained: int
    after: int
    first: str
    approved_by: str


@dataclass(frozen=True)
class Ran:
    """The number of checks of a day's runs with a status (see `lakegate.report.Status`)."""

    day: str
    status: str
    checks: int


def history(log: Iterable[Commit], table: str, rows: int, looked_at: int) -> tuple[Entry, ...]:
    """Return the commits of a table among the newest of main's log, newest first.

    `rows` are the table's current rows; only `looked_at` commits of the log are read.
    """
    found: list[Entry] = []
    for commit in islice(log, looked_at):
        if table in tables(commit) and (members := published(commit)):
            found.append(_entry(commit, members, gains(commit)[table], rows))
            rows -= found[-1].gained
    return tuple(found)


def _entry(commit: Commit, members: Sequence[Published], gained: int, after: int) -> Entry:
    return Entry(
        at=times.text(datetime.fromisoformat(commit.time)),
        message=commit.message,
        hash=commit.hash,
        gained=gained,
        after=after,
        first=members[0].id,
        approved_by=", ".join(sorted({e.approved_by for e in members if e.approved_by})),
    )


def checks_within(now: str) -> tuple[str, str]:
    """Return the time in which the checks of a table's runs are counted, in whole days."""
    today = datetime.fromisoformat(f"{now[:10]}T00:00:00+00:00")
    begin, end = today - timedelta(days=_CHECKS_DAYS - 1), today + timedelta(days=1)
    return times.text(begin), times.text(end)


def ran(results: duckdb.DuckDBPyConnection) -> Iterator[Ran]:
    """Return the checks of a table's runs by day and status; `results` are `Reader.records`."""
    for day, status, checks in results.execute(_BY_DAY).fetchall():
        yield Ran(f"{day}T00:00:00+00:00", status, checks)
