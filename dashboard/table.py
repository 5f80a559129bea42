"""A table: its commits on main, its freshness, its checks by day, and their charts."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple

import duckdb

from dashboard.formatting import ago, size
from functions.model.commits import Commit
from functions.model.merge_commit import UPKEEP, Published, gains, published, tables
from functions.model.notes.upkeep_note import UpkeepNote
from lakegate import times
from lakegate.contract.reading.service_levels import Expected
from lakegate.text import count
from lakegate.times import duration, seconds

_CHECKS_DAYS = 30
_BY_DAY = """
    SELECT check_id, strftime(run_ts, '%Y-%m-%dT00:00:00+00:00') AS day, status, count(*) AS runs
    FROM results WHERE metric <> 'run' GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True)
class Entry:
    """A commit on main that published rows of the table.

    The table grew by `gained` rows to `after`, None where others have written to it since. `first`
    is the id of one of the published ingestions; `approved_by` is the person who approved them
    despite a failed audit, "" if it passed.
    """

    at: str
    message: str
    hash: str
    gained: int
    after: int | None
    first: str
    approved_by: str


class Ran(NamedTuple):
    """The number of a day's runs of a check with a status (see `lakegate.report.Status`)."""

    check: str
    day: str
    status: str
    runs: int


def history(
    log: Iterable[tuple[Commit, frozenset[str]]], table: str, rows: int, looked_at: int
) -> tuple[Entry, ...]:
    """Return the commits of a table among the newest of main's log, newest first.

    The log has each commit with what it changed. `rows` are the table's current rows; only
    `looked_at` commits of the log are read.
    """
    entries: list[Entry] = []
    after: int | None = rows
    for commit, changed in islice(log, looked_at):
        if table in tables(commit) and (members := published(commit)):
            entries.append(_entry(commit, members, gains(commit)[table], after))
            after = None if after is None else after - entries[-1].gained
        elif table in changed and UPKEEP not in commit.properties:
            after = None  # it does not say how many rows it brought
    return tuple(entries)


def _entry(commit: Commit, members: Sequence[Published], gained: int, after: int | None) -> Entry:
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
    """Return a table's runs by check, day and status; `results` are `Reader.records`."""
    return map(Ran._make, results.execute(_BY_DAY).fetchall())


def freshness(expected: Expected, last: str, now: str) -> str:
    """Return when the next file is due, or since when it is late.

    `last` is when one came or was first expected, "" before the first look.
    """
    often = f"file is expected {expected.wording}"
    if not last:
        return f"A {often}; none has come yet."
    came = f"none has come for {duration(seconds(last, now), parts=1)}"
    due = times.text(datetime.fromisoformat(last) + expected.longest)
    if due < now:
        return f"Late by {duration(seconds(due, now), parts=1)}: a {often}, and {came}."
    return f"A {often}; {came}, and the next one is late in {duration(seconds(now, due), parts=1)}."


def last_compaction(log: Iterable[Commit], table: str) -> Commit | None:
    """Return the newest of main's commits that compacted a table."""
    notes = ((json.loads(commit.properties.get(UPKEEP, "{}")), commit) for commit in log)
    return next((commit for note, commit in notes if note.get("table") == table), None)


def upkeep_of(note: UpkeepNote, table: str, now: str) -> str:
    """Return what the last upkeep found of a table, and when that was; "" if it did not look."""
    upkeep = note.tables.get(table)
    if not upkeep:
        return ""
    dead = f", {size(upkeep.dead_bytes)} of dead files" if upkeep.dead_bytes else ""
    return (
        f"Of {count(upkeep.files, 'data file')} {upkeep.small_share:.0%} small, "
        f"{size(upkeep.metadata_bytes)} of metadata{dead}, at the upkeep {ago(note.at, now)}"
    )


def doubt_of(note: UpkeepNote) -> str:
    """Return why the last upkeep deleted nothing, "" if it was sure."""
    return f"Upkeep is in doubt: {note.doubt}" if note.doubt else ""
