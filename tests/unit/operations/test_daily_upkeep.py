"""The daily upkeep notes how each table is, and deletes what nobody reads, whatever fails."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from functions.adapters.nessie import MAIN
from functions.adapters.s3 import StoredObject
from functions.model.upkeep_note import TableUpkeep
from functions.operations import compaction
from functions.operations.daily_upkeep import upkeep
from lakegate import times
from lakegate.audit_tables import RESULTS
from lakegate.errors import Transient
from lakegate.upkeep import FEWEST
from tests.fakes.compaction import run_compaction
from tests.fakes.deployment import TABLE
from tests.fakes.faults import Fault, ProcessDied, When, die, unavailable
from tests.fakes.scenario import Scenario

pytestmark = pytest.mark.usefixtures("quiet")
DAY = 24 * 60 * 60
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def lake_of_years() -> Scenario:
    """Return a deployment with small files, whose lake has metadata, dead files and a young one."""
    made = Scenario()
    for number in range(FEWEST):
        made.land(f"shop/orders/{number}.parquet")
        made.settle()
    metadata = made.catalog.metadata(made.catalog.head(MAIN), TABLE)
    root = metadata.removeprefix("s3://lake/")
    folder = root.partition("/metadata/")[0]
    store(made, root, 100, LONG_AGO)
    store(made, f"{folder}/metadata/dead-m0.avro", 30, LONG_AGO)
    store(made, f"{folder}/data/dead.parquet", 40, LONG_AGO)
    store(made, f"{folder}/data/young.parquet", 5, datetime.fromisoformat(made.clock.now()))
    made.journal.calls.clear()
    return made


def store(made: Scenario, key: str, bytes_: int, at: datetime) -> None:
    made.lake.data[key] = StoredObject(key, bytes_, at)


def noted(made: Scenario) -> TableUpkeep:
    return made.ledger.upkeep().tables[TABLE]


def compact(made: Scenario) -> None:
    (need,) = compaction.needs(made.adapters, TABLE)
    compaction.start(made.adapters, need)
    for _ in ("rewrite", "compare"):
        (run,) = (each for each in made.jobs.runs() if not each.has_ended)
        run_compaction(run.id, made.catalog, made.lake, made.jobs)
        (begun,) = compaction.under_way(made.adapters)
        compaction.settle(made.adapters, begun)


def test_it_notes_how_each_table_is() -> None:
    """The note has small files, dead bytes and metadata that is left, also of the ops tables."""
    made = lake_of_years()
    dead = upkeep(made.adapters)
    assert sum(each.bytes for each in dead.due) == 70
    assert noted(made) == TableUpkeep(FEWEST, FEWEST, 0, 100, 5)
    assert noted(made).small_share == 1.0
    assert RESULTS.name in made.ledger.upkeep().tables
    assert made.ledger.upkeep().at > made.ledger.upkeep().kept_since


def test_it_notes_the_last_compaction() -> None:
    """The time of a table's last compaction is kept, however long ago that was."""
    made = lake_of_years()
    upkeep(made.adapters)
    assert noted(made).compacted_at == ""
    compact(made)
    upkeep(made.adapters)
    first = noted(made).compacted_at
    assert first == times.text(datetime.fromisoformat(next(made.catalog.log()).time))
    made.ended("shop/orders/later.parquet")
    made.clock.pass_(DAY)
    upkeep(made.adapters)
    made.clock.pass_(DAY)
    upkeep(made.adapters)
    assert noted(made).compacted_at == first
    assert (noted(made).files, noted(made).small) == (2, 1)


def test_consumers_are_told_what_others_changed() -> None:
    """A consumer that only Lakegate refreshes reads the newest metadata before the old is gone."""
    made = lake_of_years()
    upkeep(made.adapters)
    assert made.announcements.refreshes == []
    made.catalog.append(MAIN, TABLE, "foreign")
    upkeep(made.adapters)
    (told,) = made.announcements.refreshes
    metadata = made.catalog.metadata(made.catalog.head(MAIN), TABLE)
    assert (told.table, told.metadata) == (TABLE, metadata)
    made.clock.pass_(DAY)
    upkeep(made.adapters)
    assert len(made.announcements.refreshes) == 1


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("effect", [unavailable, die])
def test_a_fault_at_any_call_is_made_good_by_the_next_run(
    when: When, effect: Callable[[], None]
) -> None:
    """Whatever call fails, nothing with a reader is deleted, and the next day completes it."""
    usual = lake_of_years()
    upkeep(usual.adapters)
    for number in range(len(usual.journal.calls)):
        made = lake_of_years()
        alive = {key for key in made.lake.data if "dead" not in key}
        made.journal.strike_at(number, Fault(effect, when))
        with suppress(Transient, ProcessDied):
            upkeep(made.adapters)
        assert alive <= made.lake.data.keys()
        upkeep(made.adapters)
        assert made.lake.data.keys() == alive
        assert noted(made) == noted(usual)
