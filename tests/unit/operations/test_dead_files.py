"""No file that somebody can read is ever deleted, and all others are in the end."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from functions.adapters.all import Adapters
from functions.adapters.nessie import MAIN
from functions.adapters.s3 import StoredObject
from functions.model.ingestion import Ingestion, State
from functions.model.notes.upkeep_note import Look
from functions.operations.compaction.compact import Step
from functions.operations.upkeep import dead_files
from functions.operations.upkeep.dead_files import Accepted, judge
from functions.operations.upkeep.recognition import InDoubt
from lakegate.errors import Transient
from tests.fakes.catalog import FakeCatalog, FakeTable
from tests.fakes.examples import INGESTION
from tests.fakes.faults import ProcessDied
from tests.fakes.tables_of_years import DAY, KEEP_DAYS, Years, key_of

NOW = datetime(2026, 11, 23, tzinfo=UTC)
OLD, NEW = NOW - timedelta(days=60), NOW - timedelta(days=10)
BEFORE = NOW - timedelta(days=30)
UUID = "0f0e0d0c-1111-2222-3333-444455556666"
FOLDER = f"warehouse/shop/orders_{UUID}"
DATA = f"{FOLDER}/data/day=2026%2F01/a.parquet"
DIGEST = f"{FOLDER}/data/day=2026%2F01/_key_digests/a.parquet.0123abcd-1"


def due(*keys: str, alive: Iterable[str] = ()) -> list[str]:
    stored = [StoredObject(key, 5, OLD) for key in keys]
    return [each.key for each in judge(stored, set(alive), BEFORE).due]


def test_a_file_that_nobody_reaches_is_due() -> None:
    """An old data file without a reader is due, with its digest."""
    assert due(DATA, DIGEST) == [DATA, DIGEST]


def test_a_file_that_somebody_reaches_stays() -> None:
    """A data file with a reader stays, with its digest."""
    assert due(DATA, DIGEST, alive=[DATA]) == []


def test_a_young_file_stays() -> None:
    """A file that a job may be about to commit stays, and is counted."""
    found = judge([StoredObject(DATA, 5, NEW)], set(), BEFORE)
    assert (found.due, len(found.young), found.young_bytes) == ((), 1, 5)
    assert found.young_by_table() == {"shop.orders": 5}


@pytest.mark.parametrize(
    "key",
    [
        f"{FOLDER}/elsewhere/00001.metadata.json",
        "warehouse/shop/orders/metadata/a.avro",
        "warehouse/shop/orders/data/a.parquet",
        "warehouse/exports/data/a.parquet",
        f"reports/shop.orders_{UUID}/data/a",
        f"{FOLDER}-old/data/a.parquet",
        f"{FOLDER}/data/",
    ],
)
def test_what_is_no_file_of_a_table_is_not_judged(key: str) -> None:
    """Whatever else lies in the bucket stays."""
    assert due(key) == []


def test_metadata_that_nobody_reaches_is_due() -> None:
    """Dead metadata is due like data, and what is left of a table's is counted."""
    stored = [StoredObject(f"{FOLDER}/metadata/{n}", 7, OLD) for n in ("1.json", "2-m0.avro")]
    found = judge(stored, {stored[0].key}, BEFORE)
    assert [each.key for each in found.due] == [stored[1].key]
    assert (found.metadata, found.metadata_left()) == ({"shop.orders": 14}, {"shop.orders": 7})


@pytest.mark.parametrize("key", ["ops/audit_results/data/a", f"deep/er/orders_{UUID}/data/a"])
def test_data_files_of_all_our_tables_are_judged(key: str) -> None:
    """The ops tables' folders have no UUID; namespaces may be nested."""
    assert due(f"warehouse/{key}") == [f"warehouse/{key}"]


HISTORIES = range(40)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("part", HISTORIES)
def test_random_histories_lose_nothing_and_keep_no_litter(part: int) -> None:
    """In 50 histories each, no readable file is deleted, and nearly all others are.

    Main has the rows of the model, whatever was compacted, expired and deleted.
    """
    removed = left = 0
    steps: Counter[Step] = Counter()
    doubts: Counter[str] = Counter()
    for seed in range(part * 50, part * 50 + 50):
        years = Years(Random(seed))  # noqa: S311 - a story
        years.live(40)
        years.check_rows()
        years.clock.pass_((KEEP_DAYS + 2) * DAY)
        years.come_to_rest()
        years.check_rows()
        alive = years.alive()
        years.lake.restore(alive)  # what was dead, until somebody named its commit again
        assert alive <= years.lake.data.keys(), f"seed {seed}"
        removed += sum(each.bytes for each in years.lake.removed.values())
        litter = (each for key, each in years.lake.data.items() if _data_file(key) not in alive)
        left += sum(each.bytes for each in litter)
        steps += years.steps
        doubts += years.doubts
    assert left <= 0.01 * (left + removed), f"{left:,} of {left + removed:,} unreachable bytes left"
    assert removed > 100_000
    assert steps[Step.PUBLISHED] > 0
    assert doubts["MAIN_SET_BACK"] + doubts["MAIN_LACKS_COMMITS"] > 0


def _data_file(key: str) -> str:
    return key.replace("_key_digests/", "").removesuffix(".0123abcd-1")


@pytest.fixture
def years() -> Years:
    """Return a lake that upkeep knows, where another file has replaced main's file long ago."""
    years = Years(Random(0))  # noqa: S311 - a story
    table = FakeTable("a uuid")
    old, new = (years.file("shop.orders", table.uuid, frozenset()) for _ in range(2))
    years.catalog.commit(MAIN, "shop.orders", table.append(old))
    years.clock.pass_(DAY)
    years.catalog.commit(MAIN, "shop.orders", table.append(new))
    dead_files.delete(years.adapters)
    return years


def later(years: Years, days: float) -> None:
    """Let days pass; a day before the last of them ends, upkeep was sure of the catalog."""
    years.clock.pass_((days - 1) * DAY)
    note = years.adapters.ledger.upkeep()
    years.adapters.ledger.save_upkeep(replace(note, look=replace(note.look, at=years.clock.now())))
    years.clock.pass_(DAY)


def left(years: Years) -> int:
    dead_files.delete(years.adapters)
    return there(years)


def there(years: Years) -> int:
    return len([key for key in years.lake.data if "/data/" in key and "_key_digests" not in key])


def metadata(years: Years) -> int:
    return len([key for key in years.lake.data if "/metadata/" in key])


def test_a_replaced_file_stays_as_long_as_commits_are_kept(years: Years) -> None:
    """Main as it was within the last days still has all of its files and its metadata."""
    assert (left(years), metadata(years)) == (2, 4)
    years.clock.pass_((KEEP_DAYS - 1) * DAY)
    assert (left(years), metadata(years)) == (2, 4)
    years.clock.pass_(2 * DAY)
    assert (left(years), metadata(years)) == (1, 2)


def test_more_days_ask_for_nothing_that_is_deleted(years: Years) -> None:
    """When `keep_days` grows, states that were given up before are not looked for."""
    later(years, KEEP_DAYS + 2)
    assert left(years) == 1
    changed(years, settings=SimpleNamespace(keep_days=10 * KEEP_DAYS, daily_budget_usd=0))
    assert left(years) == 1


def test_unknown_files_keep_everything(years: Years) -> None:
    """If a kept state cannot be read, nothing is deleted; the error says which, and what to do."""
    later(years, 10 * KEEP_DAYS)
    table = years.catalog.table(MAIN, "shop.orders")
    assert table
    years.lake.deleted[table.metadata.removeprefix("s3://lake/")] = None
    before = years.adapters.ledger.upkeep()
    with pytest.raises(Transient, match=r"UNKNOWN_FILES.*what main reaches.*Restore it"):
        dead_files.delete(years.adapters)
    assert there(years) == 2
    assert years.adapters.ledger.upkeep() == before


def refused(years: Years) -> str:
    """Return why upkeep deletes nothing."""
    before = set(years.lake.data)
    with pytest.raises(InDoubt) as doubt:
        dead_files.delete(years.adapters)
    assert set(years.lake.data) == before
    return str(doubt.value)


def changed(years: Years, **parts: object) -> None:
    """Give the deleter other adapters."""
    years.adapters = cast(Adapters, SimpleNamespace(**(vars(years.adapters) | parts)))


def land(years: Years, name: str = "shop.orders") -> str:
    """Commit one more file to main, as a job does; return its key."""
    table = years.catalog.table(MAIN, name) or FakeTable("a uuid")
    file = years.file(name, table.uuid, frozenset())
    years.catalog.commit(MAIN, name, table.append(file))
    return key_of(name, table.uuid, file)


def test_an_empty_catalog_deletes_nothing(years: Years) -> None:
    """If Nessie comes back without its contents, all files stay, and the error says what to do."""
    later(years, KEEP_DAYS + 3)
    years.catalog = years.adapters.catalog = FakeCatalog(years.clock)  # type: ignore[misc,assignment]
    assert "OTHER_CATALOG" in refused(years)
    years.catalog = years.adapters.catalog = FakeCatalog(years.clock, virgin=True)  # type: ignore[misc,assignment]
    assert "EMPTY_CATALOG" in refused(years)


def test_main_set_back_to_the_last_look_loses_nothing(years: Years) -> None:
    """If upkeep did not run for long, main may lack commits that nobody noted: a person decides."""
    seen = years.catalog.head(MAIN)
    key = land(years)
    newest = years.catalog.head(MAIN)
    years.clock.pass_((KEEP_DAYS + 3) * DAY)
    years.catalog.reset(MAIN, seen)
    why = refused(years)
    assert "LONG_UNSEEN" in why
    assert f"--accept-main {seen}" in why
    with pytest.raises(InDoubt, match="LONG_UNSEEN"):
        dead_files.require_recognised(years.adapters)
    years.catalog.reset(MAIN, newest)
    dead_files.delete(years.adapters, Accepted(head=newest))
    later(years, KEEP_DAYS + 2)
    assert left(years) == 2  # of three
    assert key in years.lake.data


def test_what_was_committed_after_the_last_look_stays(years: Years) -> None:
    """A file was a day old at the last look, before it is deleted: a job had committed it."""
    table = years.catalog.table(MAIN, "shop.orders")
    assert table
    file = years.file("shop.orders", table.uuid, frozenset())
    years.clock.pass_(0.9 * DAY)
    dead_files.delete(years.adapters)
    seen = years.catalog.head(MAIN)
    years.catalog.commit(MAIN, "shop.orders", table.append(file))
    years.clock.pass_(KEEP_DAYS * DAY)
    years.catalog.reset(MAIN, seen)
    dead_files.delete(years.adapters)
    assert key_of("shop.orders", table.uuid, file) in years.lake.data


def test_content_of_an_unknown_type_stops_the_deletion(years: Years) -> None:
    """While a reference has content whose files are unknown, nothing is deleted; it is named."""
    years.catalog.fork("tag-1", MAIN)
    years.catalog.commit("tag-1", "shop.delta", FakeTable("d", kind="DELTA_LAKE_TABLE"))
    later(years, 10 * KEEP_DAYS)
    why = refused(years)
    assert "UNKNOWN_CONTENT" in why
    assert "shop.delta" in why
    assert "tag-1" in why
    years.catalog.delete_branch("tag-1")
    assert left(years) == 1


def test_a_note_from_the_future_is_not_believed(years: Years) -> None:
    """What was noted with a wrong clock makes no file due before its time."""
    note = years.adapters.ledger.upkeep()
    years.adapters.ledger.save_upkeep(replace(note, kept_since="2030-01-01T00:00:00.000+00:00"))
    key = key_of("shop.orders", "a uuid", years.file("shop.orders", "a uuid", frozenset()))
    years.clock.pass_(DAY)
    dead_files.delete(years.adapters)
    assert key in years.lake.data
    assert years.adapters.ledger.upkeep().kept_since < years.clock.now()


def test_results_that_are_not_recorded_stay(years: Years) -> None:
    """A run's results stay, however old, until they are recorded; those of other runs do not."""
    landed = replace(INGESTION.landed, landed_at=years.clock.now())
    failed = replace(INGESTION, landed=landed, state=State.PUBLISHED, attempt=3, recorded=1)
    saved = years.adapters.ledger.begin(failed)
    keys = [f"warehouse/ops/audit_results/data/{saved.id}-{n}-0a.parquet" for n in (1, 2, 3)]
    keys.append(f"warehouse/ops/quarantine/data/{saved.id}-3-0a.parquet")
    for key in keys:
        years.store(key)
    later(years, KEEP_DAYS + 1)
    dead_files.delete(years.adapters)
    assert [key in years.lake.data for key in keys] == [False, True, True, True]
    years.adapters.ledger.save(saved.but(recorded=3))
    dead_files.delete(years.adapters)
    assert not set(keys) & years.lake.data.keys()


def test_results_of_a_run_that_the_ledger_lost_stay(years: Years) -> None:
    """A run that the ledger does not know may be restored, and recorded then: its results stay."""
    key = f"warehouse/ops/audit_results/data/{INGESTION.id}-1-0a.parquet"
    years.store(key)
    later(years, KEEP_DAYS + 1)
    dead_files.delete(years.adapters)
    assert key in years.lake.data
    landed = replace(INGESTION.landed, landed_at=years.clock.now())
    ended = replace(INGESTION, landed=landed, state=State.PUBLISHED, attempt=1, recorded=1)
    years.adapters.ledger.begin(ended)
    dead_files.delete(years.adapters)
    assert key not in years.lake.data


def test_a_first_look_deletes_nothing(years: Years) -> None:
    """Without a note of the last look, the look is only noted."""
    note = years.adapters.ledger.upkeep()
    years.adapters.ledger.save_upkeep(replace(note, look=Look()))
    years.clock.pass_((KEEP_DAYS + 2) * DAY)
    found = dead_files.delete(years.adapters)
    assert (found.due, len(found.waiting), there(years)) == ((), 3, 2)
    assert years.adapters.ledger.upkeep().look.head == years.catalog.head(MAIN)
    assert left(years) == 1


def test_a_commit_that_the_ledger_knows_must_be_on_main(years: Years) -> None:
    """If main lacks what was published since the last look, nothing is deleted."""
    before = years.catalog.head(MAIN)
    land(years)
    landed = replace(INGESTION.landed, landed_at=years.clock.now())
    done = replace(INGESTION, landed=landed).step(
        "published", years.clock.now(), state=State.PUBLISHED, merge_hash=years.catalog.head(MAIN)
    )
    years.adapters.ledger.begin(done)
    years.clock.pass_((KEEP_DAYS + 2) * DAY)
    years.catalog.reset(MAIN, before)
    why = refused(years)
    assert "MAIN_LACKS_COMMITS" in why
    assert done.landed.key in why


def wait_for(years: Years, keep_days: int, days: float) -> None:
    """Let upkeep keep so many days, and let others pass."""
    changed(years, settings=SimpleNamespace(keep_days=keep_days))
    years.clock.pass_(days * DAY)


@pytest.mark.parametrize(("keep_days", "days"), [(0, 0.9), (KEEP_DAYS, KEEP_DAYS + 0.03)])
def test_what_a_job_may_be_about_to_commit_stays(years: Years, keep_days: int, days: float) -> None:
    """A file is at least a day old, and an hour more, as clocks differ, before it is deleted."""
    years.catalog.fork("tag-1", MAIN)
    years.catalog.reset("tag-1", list(years.catalog.log())[1].hash)
    key = key_of("shop.orders", "a uuid", years.file("shop.orders", "a uuid", frozenset()))
    wait_for(years, keep_days, days)
    dead_files.delete(years.adapters)
    assert key in years.lake.data
    for _ in range(2):
        years.clock.pass_(DAY)
        dead_files.delete(years.adapters)
    assert key not in years.lake.data


def test_a_state_whose_manifest_was_missing_before_is_unknown(years: Years) -> None:
    """What was not read for one state is not taken as known for another one."""
    base = list(years.catalog.log())[1].hash
    (state,) = years.catalog.tables_at(base).values()
    years.adapters.ledger.begin(failed(years, base_hash=base))
    later(years, KEEP_DAYS + 2)
    folder = state.metadata.removeprefix("s3://lake/").rpartition("/")[0]
    years.lake.deleted[f"{folder}/{state.manifests[0]}"] = None
    years.later = lambda: years.catalog.reset("tag-1", base)
    years.catalog.fork("tag-1", MAIN)
    assert "what tag-1 reaches" in refused(years)


def failed(years: Years, **changes: str) -> Ingestion:
    """Return a failure that waits for a decision."""
    landed = replace(INGESTION.landed, landed_at=years.clock.now())
    return replace(INGESTION, landed=landed, state=State.REJECTED).but(**changes)


@pytest.mark.parametrize("state", [State.SUBMITTED, State.AUDITED, State.REJECTED])
def test_states_that_an_ingestion_compares_stay(years: Years, state: State) -> None:
    """Base and own state of what is in flight or waits for a decision stay without a branch."""
    base = list(years.catalog.log())[1].hash
    years.catalog.create_branch("ingest/shop.orders/own")
    table = years.catalog.table(MAIN, "shop.orders")
    assert table
    own = years.file("shop.orders", "a uuid", frozenset())
    audited = years.catalog.commit("ingest/shop.orders/own", "shop.orders", table.append(own))
    years.catalog.delete_branch("ingest/shop.orders/own")
    later(years, KEEP_DAYS + 2)
    waiting = failed(years, base_hash=base, audited_hash=audited).but(state=state)
    saved = years.adapters.ledger.begin(waiting)
    assert (left(years), metadata(years)) == (3, 6)
    years.adapters.ledger.save(saved.but(state=State.IGNORED))
    assert (left(years), metadata(years)) == (1, 2)


def test_what_was_kept_is_noted_before_anything_is_deleted(years: Years) -> None:
    """If the process dies at the deletion, reconcile knows already which states may be gone."""
    later(years, KEEP_DAYS + 2)
    before = years.adapters.ledger.upkeep().kept_since
    years.lake.most = 1
    with pytest.raises(ProcessDied):
        dead_files.delete(years.adapters)
    assert years.adapters.ledger.upkeep().kept_since > before


def test_a_reference_that_goes_meanwhile_stops_the_deletion(years: Years) -> None:
    """If a listed reference's commit is unknown, what it reaches is, too: another run looks."""
    later(years, KEEP_DAYS + 2)
    years.catalog.fork("tag-1", MAIN)
    years.catalog.reset("tag-1", "0123456789abcdef" * 4)
    with pytest.raises(Transient, match="CATALOG_MOVED"):
        dead_files.delete(years.adapters)
    assert there(years) == 2


def test_main_that_is_set_back_while_upkeep_looks_loses_nothing(years: Years) -> None:
    """What main had when it was recognised must be what is looked at."""
    first = years.catalog.head(MAIN)
    land(years)
    later(years, KEEP_DAYS + 2)
    years.lake.meanwhile = lambda: years.catalog.reset(MAIN, first)
    with pytest.raises(Transient, match="CATALOG_MOVED"):
        dead_files.delete(years.adapters)
    assert there(years) == 3


def test_another_repository_is_another_one_even_with_the_same_commits(years: Years) -> None:
    """A repository that was created at another time is not taken for the one that was known."""
    note = years.adapters.ledger.upkeep()
    years.adapters.ledger.save_upkeep(replace(note, look=replace(note.look, catalog="2020")))
    later(years, KEEP_DAYS + 2)
    assert "OTHER_CATALOG" in refused(years)
    dead_files.delete(years.adapters, Accepted(head=years.catalog.head(MAIN)))
    assert there(years) == 2
    assert left(years) == 1
