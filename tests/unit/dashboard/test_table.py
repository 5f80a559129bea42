"""A table's history, freshness and checks, from main's log and the audit results."""

import json
from dataclasses import replace
from datetime import timedelta

import duckdb
import pytest

from dashboard.table import (
    Entry,
    Ran,
    doubt_of,
    freshness,
    history,
    last_compaction,
    ran,
    upkeep_of,
)
from functions.model.audit_outcome import AuditOutcome
from functions.model.commits import Commit
from functions.model.contract_terms import ContractTerms
from functions.model.ingestion import Ingestion
from functions.model.merge_commit import UPKEEP, properties
from functions.model.notes.upkeep_note import TableUpkeep, UpkeepNote
from lakegate.contract.reading.service_levels import Expected
from lakegate.job.landing import LandedObject


def commit(number: int, rows: int, replaced: int = 0, table: str = "shop.orders") -> Commit:
    """Return a commit that published so many rows of one file, and removed other rows."""
    landed = LandedObject("landing", f"{number}.csv", "v", "e", 1)
    one = Ingestion(
        f"{number:032x}",
        landed,
        terms=ContractTerms(table=table),
        audit=AuditOutcome(rows=rows, replaced_rows=replaced),
    )
    time = f"2026-03-0{number}T12:00:00Z"
    return Commit(f"h{number}", "", f"commit {number}", properties([one]), "lakegate", time)


def test_rows_are_counted_back_from_now() -> None:
    """The rows after a commit are the current rows less those that came later.

    They are unknown where another writer has changed the table since; upkeep keeps its rows.
    """
    somebody = Commit("x", "", "by hand", {}, "Ann", "2026-03-03T12:00:00Z")
    upkeep = replace(somebody, properties={UPKEEP: "{}"})
    other, ours = commit(4, 99, table="a.b"), frozenset(["shop.orders"])
    log = [
        (commit(5, 10, replaced=4), ours),
        (other, frozenset(["a.b"])),
        (somebody, frozenset(["a.b"])),
        (upkeep, ours),
        (commit(2, 7), ours),
        (somebody, ours),
        (commit(1, 100), ours),
        (commit(0, 1), ours),
    ]
    found = history(log, "shop.orders", rows=113, looked_at=7)
    assert [(e.hash, e.gained, e.after) for e in found] == [
        ("h5", 6, 113),
        ("h2", 7, 107),
        ("h1", 100, None),
    ]
    assert found[0] == Entry(
        at="2026-03-05T12:00:00.000+00:00",
        message="commit 5",
        hash="h5",
        gained=6,
        after=113,
        first=f"{5:032x}",
        approved_by="",
    )


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ("", "; none has come yet."),
        (
            "2026-03-08T10:00:00.000+00:00",
            "; none has come for 2 h, and the next one is late in 1 d.",
        ),
    ],
)
def test_a_table_is_due(last: str, words: str) -> None:
    """The next file is due as long after the last one as the contract's service levels allow."""
    assert said(last) == f"A file is expected every 1 day, 4 hours late{words}"


def test_a_table_is_late() -> None:
    """The next file is late once the last one is older than that."""
    words = "a file is expected every 1 day, 4 hours late, and none has come for 2 d."
    assert said("2026-03-06T12:00:00.000+00:00") == f"Late by 20 h: {words}"


def said(last: str) -> str:
    expected = Expected(timedelta(days=1), timedelta(hours=4))
    return freshness(expected, last, "2026-03-08T12:00:00.000+00:00")


def test_a_table_is_as_the_last_upkeep_found_it() -> None:
    """Small files, metadata, dead files and the age of the note are told, if there is one."""
    tables = {"a.b": TableUpkeep(8, 6, 1, 2_000, 3_000_000), "a.c": TableUpkeep()}
    note = UpkeepNote("2026-03-08T02:00:00.000+00:00", "", tables)
    now = "2026-03-08T12:00:00.000+00:00"
    assert upkeep_of(note, "a.b", now) == (
        "Of 8 data files 75% small, 2.0 KB of metadata, 3.0 MB of dead files, "
        "at the upkeep 10 h ago"
    )
    assert "dead" not in upkeep_of(note, "a.c", now)
    assert upkeep_of(note, "a.d", now) == ""
    assert doubt_of(note) == ""
    assert "in doubt: main lacks" in doubt_of(replace(note, doubt="main lacks a commit"))


def test_the_last_compaction_is_that_of_the_table() -> None:
    """Of main's commits the newest one that compacted this table counts."""

    def compaction(table: str, number: int) -> Commit:
        note = {UPKEEP: json.dumps({"table": table, "branch": f"upkeep/{table}/x"})}
        return Commit(f"c{number}", "", "Compact", note, "lakegate", "2026-03-01T12:00:00Z")

    log = [commit(5, 10), compaction("a.b", 4), compaction("shop.orders", 3)]
    assert last_compaction([*log, compaction("shop.orders", 2)], "shop.orders") == log[2]
    assert last_compaction(log[:2], "shop.orders") is None


def test_checks_are_counted_by_day() -> None:
    """Each check of a run counts, also one that a contract calls so; the run's own line not."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(
            """CREATE VIEW results AS FROM (VALUES
            (TIMESTAMPTZ '2026-03-01 12:00:00+00', 'run', 'run', 'pass'),
            (TIMESTAMPTZ '2026-03-01 12:00:00+00', 'id.nullValues', 'nullValues', 'pass'),
            (TIMESTAMPTZ '2026-03-01 13:00:00+00', 'id.nullValues', 'nullValues', 'pass'),
            (TIMESTAMPTZ '2026-03-02 00:30:00+00', 'id.nullValues', 'nullValues', 'fail'),
            (TIMESTAMPTZ '2026-03-02 00:30:00+00', 'run', 'rowCount', 'pass')
            ) results (run_ts, check_id, metric, status)"""
        )
        assert list(ran(connection)) == [
            Ran("id.nullValues", "2026-03-01T00:00:00+00:00", "pass", 2),
            Ran("id.nullValues", "2026-03-02T00:00:00+00:00", "fail", 1),
            Ran("run", "2026-03-02T00:00:00+00:00", "pass", 1),
        ]
