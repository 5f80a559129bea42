"""The first commit and tables of a catalog, made once even by several processes."""

from contextlib import suppress

import pytest

from functions.adapters.nessie import MAIN, MergeConflict
from functions.pipeline.outcome.seed import Seeded, seed
from lakegate.audit.audit_tables import QUARANTINE, RESULTS
from lakegate.errors import Transient
from tests.fakes.faults import KINDS, Fault, ProcessDied, die
from tests.fakes.scenario import Scenario

BOTH = (RESULTS.name, QUARANTINE.name)


@pytest.fixture
def virgin() -> Scenario:
    """Return a deployment whose main has no commit yet."""
    return Scenario(virgin=True)


def on_main(deployment: Scenario) -> set[str]:
    return deployment.catalog.names(MAIN)


def test_a_virgin_main_gets_all(virgin: Scenario) -> None:
    """A new main gets its first commit, and both tables by one more."""
    assert seed(virgin.adapters) == Seeded(first_commit=True, tables=BOTH)
    assert on_main(virgin) == set(BOTH)
    assert next(virgin.catalog.log()).message.startswith("Make ops.")
    assert virgin.catalog.branches("publish/") == []


def test_the_second_time_nothing_is_done(virgin: Scenario) -> None:
    """A repetition changes nothing."""
    seed(virgin.adapters)
    head = virgin.catalog.head(MAIN)
    assert seed(virgin.adapters) == Seeded(first_commit=False, tables=())
    assert virgin.catalog.head(MAIN) == head


def test_a_table_that_is_there_stays(virgin: Scenario) -> None:
    """If a run was recorded before, only the missing table is made."""
    virgin.catalog.begin("ops")
    virgin.land("shop/orders/a.parquet")
    virgin.settle()
    recorded = virgin.catalog.table(MAIN, RESULTS.name)
    assert seed(virgin.adapters) == Seeded(first_commit=False, tables=(QUARANTINE.name,))
    assert virgin.catalog.table(MAIN, RESULTS.name) == recorded


@pytest.mark.parametrize("point", ["catalog.begin", "catalog.create_branch", "catalog.merge"])
def test_two_at_once_make_everything_once(virgin: Scenario, point: str) -> None:
    """Two processes at once both succeed, and main has one of each table."""
    done: list[Seeded] = []
    virgin.journal.strike(point, Fault(lambda: done.append(seed(virgin.adapters))))
    done.append(seed(virgin.adapters))
    assert sorted(each.first_commit for each in done) == [False, True]
    assert sorted(name for each in done for name in each.tables) == sorted(BOTH)
    assert virgin.catalog.branches("publish/") == []


@pytest.mark.parametrize("point", ["catalog.create_branch", "tables.make", "catalog.head"])
def test_a_sweep_meanwhile_leaves_it_alone(virgin: Scenario, point: str) -> None:
    """The sweep does not delete the branch on which the tables are being made."""
    virgin.journal.strike(point, Fault(virgin.sweep, "after", times=2))
    assert seed(virgin.adapters).tables == BOTH
    assert on_main(virgin) == set(BOTH)


def test_the_branch_of_a_dead_process_is_swept(virgin: Scenario) -> None:
    """Once main has its tables, the sweep deletes other branches that they were made on."""
    virgin.journal.strike("catalog.delete_branch", Fault(die))
    with suppress(ProcessDied):
        seed(virgin.adapters)
    assert virgin.catalog.branches("publish/")
    virgin.sweep()
    assert virgin.catalog.branches("publish/") == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_try_completes_a_failed_one(kind: str) -> None:
    """After a failed call or a dead process the next try completes the seeding."""
    for number in range(_calls()):
        virgin = Scenario(virgin=True)
        virgin.journal.strike_at(number, Fault(*KINDS[kind]))
        with suppress(Transient, ProcessDied):
            seed(virgin.adapters)
        seed(virgin.adapters)
        assert on_main(virgin) == set(BOTH)
        assert virgin.catalog.table(MAIN, RESULTS.name)


def test_a_main_that_never_rests_is_tried_later(virgin: Scenario) -> None:
    """If every merge is refused, the error is transient, and no branch is left."""
    virgin.journal.strike("catalog.merge", Fault(_refuse, times=float("inf")))
    with pytest.raises(Transient, match="TABLE_BUSY"):
        seed(virgin.adapters)
    assert virgin.catalog.branches("publish/") == []


def _refuse() -> None:
    raise MergeConflict("MERGE_CONFLICT", "main moved on")


def _calls() -> int:
    """Return how many calls a seeding makes."""
    virgin = Scenario(virgin=True)
    seed(virgin.adapters)
    return len(virgin.journal.calls)
