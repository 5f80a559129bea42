"""A table's page, with main's log and the audit results."""

import duckdb

from dashboard.table_page import Entry, Ran, history, ran
from functions.model.commits import Commit
from functions.model.ingestion import Ingestion
from functions.model.merge_commit import properties
from lakegate.landing import LandedObject


def commit(number: int, rows: int, replaced: int = 0, table: str = "shop.orders") -> Commit:
    """Return a commit that published so many rows of one file, and removed other rows."""
    landed = LandedObject("landing", f"{number}.csv", "v", "e", 1)
    one = Ingestion(f"{number:032x}", landed, table=table, rows=rows, replaced_rows=replaced)
    time = f"2026-03-0{number}T12:00:00Z"
    return Commit(f"h{number}", "", f"commit {number}", properties([one]), "lakegate", time)


def test_rows_are_counted_back_from_now() -> None:
    """The rows after a commit are the current rows less those that came later."""
    somebody = Commit("x", "", "by hand", {}, "Ann", "2026-03-03T12:00:00Z")
    other = commit(4, 99, table="a.b")
    log = [commit(5, 10, replaced=4), other, somebody, commit(2, 7), commit(1, 100)]
    found = history(log, "shop.orders", rows=113, looked_at=4)
    assert [(e.hash, e.gained, e.after) for e in found] == [
        ("h5", 6, 113),
        ("h2", 7, 107),
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


def test_checks_are_counted_by_day() -> None:
    """Each check of a run counts, and the run's own line does not."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(
            """CREATE VIEW results AS FROM (VALUES
            (TIMESTAMPTZ '2026-03-01 12:00:00+00', 'run', 'pass'),
            (TIMESTAMPTZ '2026-03-01 12:00:00+00', 'id.nullValues', 'pass'),
            (TIMESTAMPTZ '2026-03-01 13:00:00+00', 'id.nullValues', 'pass'),
            (TIMESTAMPTZ '2026-03-02 00:30:00+00', 'id.nullValues', 'fail')
            ) results (run_ts, check_id, status)"""
        )
        assert list(ran(connection)) == [
            Ran("2026-03-01T00:00:00+00:00", "pass", 2),
            Ran("2026-03-02T00:00:00+00:00", "fail", 1),
        ]
