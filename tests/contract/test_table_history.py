"""Audit results are registered in main's history tables, in memory and in Iceberg."""

import uuid

import pytest

from functions.adapters.nessie import MergeConflict
from lakegate.audit.audit_tables import RESULTS, TABLES, Entry, HistoryTable
from lakegate.audit.report import DataFile as DataFile_
from lakegate.errors import Transient
from tests.contract.lakes import PLACES, Lake, lake_of


@pytest.fixture(params=PLACES)
def lake(request: pytest.FixtureRequest) -> Lake:
    """Return a lake whose main has the test's table with one file, `old`."""
    return lake_of(request)


def entry(file: str, table: HistoryTable, **how: bool) -> Entry:
    """Return a run's file for a history table."""
    same = {"table_name": "shop.orders", "run_ts": "2026-03-01T12:00:00.000+00:00"}
    path = f"{table.files('lake')}{file}"
    return Entry(table, DataFile_(path, 3, 300), same, how["published"], how.get("again", False))


def entered(lake: Lake, *entries: Entry) -> tuple[str, str]:
    """Return a branch off main with these files registered, and its head."""
    branch = f"publish/ops.audit_results/{uuid.uuid4().hex[:12]}-a"
    lake.bases[branch] = lake.catalog.create_branch(branch)
    lake.tables.enter(entries, "lake", branch)
    return branch, lake.catalog.head(branch)


def histories(lake: Lake) -> dict[str, int]:
    """Return the rows of main's history tables."""
    return {t.name: lake.tables.rows(t.name, "main").records for t in TABLES}


def test_files_of_runs_are_registered(lake: Lake) -> None:
    """Files are registered beside existing ones; missing tables are created."""
    before = histories(lake)
    name = uuid.uuid4().hex
    made = [entry(f"{name}-{n}", table, published=True) for n in (1, 2) for table in TABLES]
    lake.publish(*entered(lake, *made))
    assert histories(lake) == {table: rows + 6 for table, rows in before.items()}
    lake.publish(*entered(lake, entry(f"{name}-3", RESULTS, published=False)))
    assert histories(lake)[RESULTS.name] == before[RESULTS.name] + 9


def test_of_two_who_enter_at_once_one_is_refused(lake: Lake) -> None:
    """Main refuses a branch created before its history table changed."""
    name = uuid.uuid4().hex
    first = entered(lake, entry(f"{name}-1", RESULTS, published=True))
    second = entered(lake, entry(f"{name}-1", RESULTS, published=True))
    lake.publish(*first)
    with pytest.raises(MergeConflict):
        lake.publish(*second)


def test_a_file_that_is_registered_again_moves(lake: Lake) -> None:
    """A file registered again moves and is there once; a removed one stays away."""
    name = uuid.uuid4().hex
    lake.publish(*entered(lake, entry(f"{name}-1", RESULTS, published=False)))
    before = histories(lake)
    gone = entry(f"{name}-2", RESULTS, published=True, again=True)
    moved = entry(f"{name}-1", RESULTS, published=True, again=True)
    lake.publish(*entered(lake, moved, gone))
    assert histories(lake) == before
    assert not lake.tables.doubled(RESULTS.name, "main")


def test_nothing_is_registered_on_a_branch_that_is_gone(lake: Lake) -> None:
    """A branch that another process deleted is a transient error."""
    with pytest.raises(Transient):
        lake.tables.enter([entry("x", RESULTS, published=True)], "lake", "publish/x/gone")


def test_tables_of_history_are_made_once(lake: Lake) -> None:
    """Missing tables are created empty; existing ones stay unchanged."""
    name = lake.table.partition(".")[0]
    lake.publish(*entered(lake, entry(f"{name}-1", RESULTS, published=True)))
    before, fresh = histories(lake), lake.branch("fresh")
    lake.tables.make(TABLES, "lake", fresh)
    at = lake.catalog.head(fresh)
    lake.tables.make(TABLES, "lake", fresh)
    assert lake.catalog.head(fresh) == at
    assert all(lake.catalog.metadata(at, table.name) for table in TABLES)
    assert {t.name: lake.tables.rows(t.name, fresh).records for t in TABLES} == before
