"""Random orders of the calls of concurrent processes, which keep every promise.

A run is a story (tests/fakes/schedule.py) in which Lambdas, sweeps, job drivers and commands run at
once; each goes on when the story says so. Indexes lag, EMR reports runs as ended whose drivers go
on, and any call fails, or seems to. `play` repeats a failing story. To try others, or more:
`LAKEGATE_SEED=7 LAKEGATE_SCHEDULES=2000 .venv/bin/python -m pytest pipeline/test_schedules.py`;
`make test-long` does.
"""

from collections import Counter
from zlib import crc32

import pytest

from tests.fakes.aims import Aim, Step
from tests.fakes.amounts import SCHEDULES, SEED
from tests.fakes.deployment import TABLE
from tests.fakes.disorder import Lag, Undo
from tests.fakes.events import KEYS, Change, Contract, Deliver, Land, LoseEntry, Time
from tests.fakes.openings import A_GROUP_LOSES_A_MEMBER, A_TABLE, WAITING_TOGETHER
from tests.fakes.restorations import Restoration
from tests.fakes.schedule import Begin, Finish, Go, Work
from tests.fakes.schedules import OPENINGS, TWO_SHARED_RUNS, explore, explore_restorations, play
from tests.fakes.stage import Stage, Story


def test_an_expiry_after_a_lost_entry_breaks_no_promise() -> None:
    """A day later expiry begins, and the ledger loses a file that waits: it is published."""
    play((*WAITING_TOGETHER, Begin(Work.EXPIRE, 0), LoseEntry(1)))


def test_a_lost_member_of_a_group_may_end_without_its_first_branch() -> None:
    """It is restored with the branch that the group has deleted, and others overtook it."""
    play((*A_GROUP_LOSES_A_MEMBER, Contract("replaces rows")))


def test_main_set_back_below_a_late_branch_breaks_no_promise() -> None:
    """A process that hung makes its branch late, and empty; then main loses the commit below it."""
    late: Story = (Begin(Work.MESSAGE), Go(0, 4), Time.REST, Go(0, 2), Undo())
    play((Contract("merges rows"), Land(), Time.REST, Land(), Deliver(), Land(KEYS[1]), *late))


def test_a_sweep_that_searches_leaves_an_entry_lost_meanwhile_to_the_next_one() -> None:
    """What a ledger loses a day later, while a sweep is under way, does not wait for a week."""
    sweep: Story = (Begin(Work.EXPIRE, 0), Begin(Work.SWEEP, 0), *[Go(0, 1)] * 5, LoseEntry(0))
    play((*WAITING_TOGETHER, *sweep))


def test_a_sweep_does_not_start_again_what_a_shared_run_has_by_now() -> None:
    """An index that lags calls a file startable whose shared run has reported on it."""
    lagging: Story = (Aim(Step.WRITTEN, Work.JOB, 0, None), Begin(Work.SWEEP, 0), Lag(0, 1))
    play((*TWO_SHARED_RUNS, Time.COURSE, Change("drop", TABLE), *lagging))


def test_a_job_whose_branch_loses_its_commit_runs_again() -> None:
    """A catalog that is restored between a job's commit and its look at it loses no good file."""
    job: Story = (Begin(Work.JOB), Restoration.BACKUP, Go(0, 6), Restoration.RESTORE)
    realigned: Story = (Begin(Work.REALIGN), Finish(), Restoration.REALIGNED, Time.REST)
    play(
        (*A_TABLE, Land(), Deliver(), *job, *realigned, Restoration.REALIGNED, Restoration.SETTLED)
    )


@pytest.mark.timeout(3600)  # it takes long to shorten a failing story
@pytest.mark.parametrize("name", OPENINGS)
def test_every_promise_is_kept_in_any_order(name: str) -> None:
    """Every story comes to rest with every promise kept, in any order of calls."""
    print(f"again: LAKEGATE_SEED={SEED} LAKEGATE_SCHEDULES={SCHEDULES}")
    told: Counter[str] = Counter()

    def count(stage: Stage) -> None:
        told["stories"] += 1
        told["processes"] += len(stage.processes)

    explore(SCHEDULES, crc32(f"{SEED} {name}".encode()), count, openings=[OPENINGS[name]])
    assert told["stories"] >= SCHEDULES
    assert told["processes"] > SCHEDULES


@pytest.mark.timeout(3600)  # it takes long to shorten a failing story
def test_every_promise_is_kept_while_the_catalog_is_restored() -> None:
    """Processes that began before a restoration go on beside the command, and harm nothing."""
    print(f"again: LAKEGATE_SEED={SEED} LAKEGATE_SCHEDULES={SCHEDULES}")
    restored: Counter[bool] = Counter()
    explore_restorations(SCHEDULES, SEED, lambda stage: restored.update([bool(stage.backup)]))
    assert restored[True] > SCHEDULES // 2
