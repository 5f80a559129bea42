"""The daily upkeep notes how each table is, and deletes what nobody reads, whatever fails."""

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from threading import Barrier

import pytest

from functions.adapters.nessie import MAIN
from functions.adapters.s3 import StoredObject
from functions.model.notes.upkeep_note import TableUpkeep
from functions.operations.compaction import compact as compaction
from functions.operations.upkeep.daily import upkeep
from functions.operations.upkeep.dead_files import Accepted
from functions.operations.upkeep.recognition import InDoubt
from lakegate import times
from lakegate.audit.audit_tables import RESULTS
from lakegate.errors import Transient
from lakegate.job.upkeep import FEWEST
from tests.fakes.compaction import run_compaction
from tests.fakes.deployment import TABLE
from tests.fakes.faults import KINDS, Fault, ProcessDied
from tests.fakes.scenario import Scenario

pytestmark = pytest.mark.usefixtures("quiet")
DAY = 24 * 60 * 60
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def lake_of_years() -> Scenario:
    """Return a deployment with small files, whose lake has metadata, dead files and a young one.

    Upkeep has looked at its catalog before.
    """
    made = Scenario()
    for number in range(FEWEST):
        made.land(f"shop/orders/{number}.parquet")
        made.settle()
    upkeep(made.adapters)
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


def test_tables_are_looked_at_together() -> None:
    """Several tables are read at a time: thousands would take longer than a function has."""
    made, both = lake_of_years(), Barrier(2, timeout=10)

    def meet(call: str) -> tuple[()]:
        if call == "tables.size":
            both.wait()
        return ()

    made.journal.pause = meet
    assert {RESULTS.name, TABLE} == {need.table for need in compaction.needs(made.adapters)}


def test_a_commit_is_looked_at_once() -> None:
    """Branches at one commit are one look, and no second one follows while they stay there."""
    made = lake_of_years()
    for number in range(3):
        made.catalog.create_branch(f"other/{number}")
    del made.journal.calls[:]
    upkeep(made.adapters)
    assert made.journal.calls.count("catalog.states") == 1


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
    made.clock.pass_(60)
    upkeep(made.adapters)
    (told,) = made.announcements.refreshes
    metadata = made.catalog.metadata(made.catalog.head(MAIN), TABLE)
    assert (told.table, told.metadata) == (TABLE, metadata)
    made.clock.pass_(DAY)
    upkeep(made.adapters)  # may tell them again what changed just before the last run
    made.announcements.refreshes.clear()
    made.clock.pass_(DAY)
    upkeep(made.adapters)
    assert made.announcements.refreshes == []


def test_consumers_are_told_in_spite_of_a_slow_clock() -> None:
    """A change after the last run counts, though Nessie's clock calls it earlier than that."""
    made = lake_of_years()
    upkeep(made.adapters)
    made.clock.pass_(-60)
    made.catalog.append(MAIN, TABLE, "foreign")
    made.clock.pass_(DAY)
    upkeep(made.adapters)
    assert [each.table for each in made.announcements.refreshes] == [TABLE]


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_at_any_call_is_made_good_by_the_next_run(kind: str) -> None:
    """Whatever call fails, nothing with a reader is deleted, and the next day completes it."""
    usual = lake_of_years()
    upkeep(usual.adapters)
    for number in range(len(usual.journal.calls)):
        made = lake_of_years()
        alive = {key for key in made.lake.data if "dead" not in key}
        made.journal.strike_at(number, Fault(*KINDS[kind]))
        with suppress(Transient, ProcessDied):
            upkeep(made.adapters)
        assert alive <= made.lake.data.keys()
        upkeep(made.adapters)
        assert made.lake.data.keys() == alive
        assert noted(made) == noted(usual)


def told(made: Scenario) -> list[str]:
    """Return the alerts about upkeep."""
    return [alert.cause for _, alert in made.alerts.posted if alert.cause.startswith("UPKEEP")]


def set_back(made: Scenario) -> str:
    """Set main back by a commit; return its head before."""
    head = made.catalog.head(MAIN)
    made.catalog.reset(MAIN, list(made.catalog.log())[1].hash)
    return head


def test_doubt_is_told_and_noted_until_it_is_gone() -> None:
    """Operators get one alert for a doubt, and the note has it until upkeep is sure again."""
    made = lake_of_years()
    head = set_back(made)
    for _ in range(2):
        with pytest.raises(InDoubt, match="MAIN_SET_BACK"):
            upkeep(made.adapters)
        assert head in made.ledger.upkeep().doubt
        assert told(made) == ["UPKEEP MAIN_SET_BACK"]
    made.catalog.reset(MAIN, head)
    assert len(upkeep(made.adapters).due) == 2
    assert made.ledger.upkeep().doubt == ""


def test_a_person_can_accept_main_as_it_is() -> None:
    """Accepting a commit of main notes what there is, and deletes from the next run on."""
    made = lake_of_years()
    lost = set_back(made)
    with pytest.raises(InDoubt, match="NOT_ON_MAIN"):
        upkeep(made.adapters, Accepted(head=lost))
    dead = upkeep(made.adapters, Accepted(head=made.catalog.head(MAIN)))
    assert (dead.due, len(dead.waiting), made.lake.deleted) == ((), 2, {})
    assert len(upkeep(made.adapters).due) == 2


def test_an_acceptance_holds_for_what_was_published_just_before() -> None:
    """What main lost within the hour before it was accepted raises no doubt again."""
    made = lake_of_years()
    merges = {each.merge_hash for each in made.ledger.all()}
    log = [each.hash for each in made.catalog.log()]
    before = next(number for number, hash_ in enumerate(log) if hash_ in merges) + 1
    made.catalog.reset(MAIN, log[before])
    made.clock.pass_(60)
    with pytest.raises(InDoubt):
        upkeep(made.adapters)
    upkeep(made.adapters, Accepted(head=made.catalog.head(MAIN)))
    upkeep(made.adapters)
    assert made.ledger.upkeep().doubt == ""


def test_much_is_deleted_only_if_a_person_accepts_it() -> None:
    """If a large share of all bytes is due, it stays until a person accepts so many bytes."""
    made = lake_of_years()
    root = made.catalog.metadata(made.catalog.head(MAIN), TABLE).removeprefix("s3://lake/")
    folder = root.partition("/metadata/")[0]
    store(made, f"{folder}/data/large.parquet", 300_000_000, LONG_AGO)
    with pytest.raises(InDoubt, match=r"MUCH_IS_DUE.*300,000,070 of 300,000,191 bytes.*orders"):
        upkeep(made.adapters)
    with pytest.raises(InDoubt, match="--accept-bytes 300000070"):
        upkeep(made.adapters, Accepted(bytes=300_000_069))
    assert (len(upkeep(made.adapters, Accepted(bytes=300_000_070)).due)) == 3


def test_that_much_is_due_is_no_doubt_about_main() -> None:
    """However long a person thinks about it, so many bytes are then deleted at once."""
    made = lake_of_years()
    root = made.catalog.metadata(made.catalog.head(MAIN), TABLE).removeprefix("s3://lake/")
    folder = root.partition("/metadata/")[0]
    store(made, f"{folder}/data/large.parquet", 300_000_000, LONG_AGO)
    for _ in range(made.adapters.settings.keep_days + 2):
        made.clock.pass_(DAY)
        with pytest.raises(InDoubt, match="MUCH_IS_DUE"):
            upkeep(made.adapters)
    assert upkeep(made.adapters, Accepted(bytes=300_001_000)).due
    assert made.ledger.upkeep().doubt == ""


def test_what_is_a_small_share_is_deleted_at_once() -> None:
    """A fifth of all bytes, or less, is a day's work."""
    made = lake_of_years()
    root = made.catalog.metadata(made.catalog.head(MAIN), TABLE).removeprefix("s3://lake/")
    folder = root.partition("/metadata/")[0]
    store(made, root, 1_200_000_000, LONG_AGO)
    store(made, f"{folder}/data/large.parquet", 300_000_000 - 70, LONG_AGO)
    assert upkeep(made.adapters).due_bytes == 300_000_000


def test_of_two_runs_at_once_one_deletes_nothing() -> None:
    """A run that another one overtook cannot tell what that one has noted, and deletes nothing."""
    made = lake_of_years()
    made.journal.strike("ledger.save_upkeep", Fault(lambda: upkeep(made.adapters)))
    there = set(made.lake.data)
    with pytest.raises(Transient, match="UPKEEP_BUSY"):
        upkeep(made.adapters)
    assert len(there - made.lake.data.keys()) == 2
    assert made.ledger.upkeep().at


def test_a_wrong_clock_notes_no_time_of_its_own() -> None:
    """The time of the note is S3's, so that the next run hears of all that others change."""
    made = lake_of_years()
    ahead = replace(made.adapters, now=lambda: "2199-01-01T00:00:00.000+00:00")
    upkeep(ahead)
    assert made.ledger.upkeep().at < made.clock.now()
    made.ledger.save_upkeep(replace(made.ledger.upkeep(), at="2199-01-01"))
    made.catalog.append(MAIN, TABLE, "foreign")
    upkeep(made.adapters)
    assert [each.table for each in made.announcements.refreshes] == [TABLE]
