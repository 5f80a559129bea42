"""Measures for monitoring count what the ledger has."""

from dataclasses import replace
from typing import Any

from access.ingestions.measures import measures
from functions.model.decisions import Decisions
from functions.model.notes.freshness import Freshness
from lakegate.job.batch import BatchFile
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import FakeLedger
from tests.unit.access.ingestions.test_find import at
from tests.unit.cli.cli_examples import ERRORED, IGNORED, LANDED, PUBLISHED, REJECTED, SUBMITTED

NOW = "2026-03-09T12:00:00.000+00:00"
DAY_8 = 1772971200.0  # 2026-03-08T12:00:00Z
TABLE = ("table", "shop.orders")


def measured(*ingestions: Any, freshness: Freshness | None = None) -> dict[str, dict[Any, float]]:
    """Return the measures of a ledger with some ingestions."""
    ledger: Any = FakeLedger(FakeClock().now)
    for number, each in enumerate(ingestions):
        ledger.begin(replace(each, id=f"{number:032}"))
    if freshness:
        ledger.save_freshness(freshness)
    return {each.name: {**each.values} for each in measures(ledger, NOW)}


def test_files_of_the_last_day_are_counted_by_table_and_state() -> None:
    """Each file that landed in the last day counts once, in the state that people see."""
    found = measured(
        *(at(PUBLISHED, 9), at(PUBLISHED, 9), at(REJECTED, 9, decisions=Decisions(discarded=True))),
        *(at(ERRORED, 9), at(IGNORED, 9), at(PUBLISHED, 7)),
    )
    assert found["files"] == {
        (TABLE, ("state", "published")): 2,
        (TABLE, ("state", "discarded")): 1,
        (("table", ""), ("state", "errored")): 1,
        (("table", ""), ("state", "ignored")): 1,
    }
    assert found["rows_published"] == {(TABLE,): 2 * PUBLISHED.audit.rows}


def test_a_batch_counts_for_each_of_its_tables() -> None:
    """Rows of a batch are those of the table, and files in its folder are not counted again."""
    parts = tuple(
        BatchFile(f"{n}.csv", "v", "e", 1, t, "", "", rows=rows)
        for n, (t, rows) in enumerate([("shop.orders", 3), ("shop.items", 5), ("shop.items", 6)])
    )
    found = measured(at(PUBLISHED, 9, parts=parts, terms=replace(PUBLISHED.terms, table="batch")))
    assert found["rows_published"] == {(TABLE,): 3, (("table", "shop.items"),): 11}


def test_what_waits_for_a_decision_is_counted_whatever_its_age() -> None:
    """Old failures count until somebody decides, and so does the landing of the oldest."""
    found = measured(at(REJECTED, 8), at(REJECTED, 9), at(REJECTED, 1, superseded_by="n" * 32))
    assert found["waiting_for_decision"] == {(TABLE, ("state", "rejected")): 2}
    assert found["oldest_waiting_for_decision_timestamp_seconds"] == {(): DAY_8}


def test_what_is_in_flight_is_counted_whatever_its_age() -> None:
    """Files without a final state count, and so does the landing of the oldest."""
    found = measured(at(SUBMITTED, 8), at(LANDED, 9), at(PUBLISHED, 9))
    assert found["in_flight"] == {(TABLE,): 1, (("table", ""),): 1}
    assert found["oldest_in_flight_timestamp_seconds"] == {(): DAY_8}
    assert measured(at(PUBLISHED, 9))["oldest_in_flight_timestamp_seconds"] == {}


def test_late_tables_are_marked() -> None:
    """Each table that expects files is late or not, and has the time of its last file."""
    arrived = {"shop.orders": "2026-03-08T12:00:00.000+00:00", "shop.items": NOW}
    found = measured(freshness=Freshness(NOW, arrived, ("shop.orders",)))
    assert found["table_late"] == {(TABLE,): 1, (("table", "shop.items"),): 0}
    assert found["table_last_file_timestamp_seconds"][(TABLE,)] == DAY_8
