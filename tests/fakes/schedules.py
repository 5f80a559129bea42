"""Stories of many processes at once (tests/fakes/schedule.py), drawn by hypothesis."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from functions.adapters.emr import RunState
from tests.fakes.aims import BRINGING, RECORDING, Aim, Ops, Step
from tests.fakes.backfills import NAMES, TARGET, Expire, Source
from tests.fakes.deployment import OTHER_TABLE, SETTINGS, TABLE, Deployment
from tests.fakes.disorder import Declare, Lag, Skew, Undo
from tests.fakes.events import (
    CHANGES,
    CONTRACTS,
    KEYS,
    Ask,
    Batch,
    Change,
    Contract,
    Deliver,
    Land,
    Lose,
    LoseEntry,
    LoseRun,
    Meddle,
    Time,
)
from tests.fakes.forgeries import Forge, Forgery
from tests.fakes.machine import tell
from tests.fakes.openings import (
    A_CHANGE,
    A_GROUP_LOSES_A_MEMBER,
    A_TABLE,
    BATCHES,
    BEYOND,
    COMPARED,
    FAILED,
    LATEST_TURNS,
    NOTHING,
    SHARED,
    TURNS,
    VERSIONS,
    WAITING_TOGETHER,
)
from tests.fakes.restorations import Restoration
from tests.fakes.schedule import Begin, Break, Finish, Go, Trouble, Work
from tests.fakes.stage import File, Stage, Story
from tests.fakes.stories import Events, explore_with, flat, weighted
from tests.fakes.upkeep_events import CleanUp

# Few enough for a story to reach the last attempt.
MOST_ATTEMPTS = 2


def play(story: Story) -> Stage:
    """Tell a story in a deployment with few attempts. Raise AssertionError as `tell` does."""
    deployment = Deployment(replace(SETTINGS, max_branches=MOST_ATTEMPTS))
    stage = tell((*story, Ops.TAKEN), Stage(deployment, excused={"errored TOO_MANY_ATTEMPTS"}))
    most = MOST_ATTEMPTS * (1 + stage.forgotten)  # what was forgotten may begin anew
    for each in deployment.ledger.all():
        assert each.attempt - each.tries_from <= most, f"tried too often: {each}"
    return stage


_NTH = st.integers(0, 3)
_FILES = st.sampled_from(
    [File.GOOD, File.GOOD, File.GOOD, File.REJECTED, File.CRASHING_ONCE, File.CORRUPT]
)
_ORDINARY = [Work.MESSAGE, Work.MESSAGE, Work.JOB, Work.JOB, Work.MESSAGES, Work.SWEEP]
TWO_DRIVERS: Story = (*A_TABLE, Land(), Deliver(), Begin(Work.JOB), Begin(Work.JOB))
TWO_SHARED_RUNS: Story = (
    *A_TABLE,
    *SHARED,
    Begin(Work.JOB),
    Go(0, 3),
    Time.COMES_AGAIN,
    Begin(Work.JOB),
)
KEYED: Story = (Contract("merges rows"), Land(), Time.REST, Land(), Deliver(), Land(KEYS[1]))
_DIES = st.sampled_from([None, *Trouble])
AIMED_AT_RESULTS = st.builds(
    Aim,
    st.sampled_from(RECORDING),
    st.sampled_from([Work.MESSAGE, Work.SWEEP]),
    _NTH,
    _DIES,
)
AIMED_AT_FILES = st.builds(Aim, st.just(Step.WRITTEN), st.just(Work.JOB), _NTH, _DIES)
AIMED_AT_COPIES = st.builds(Aim, st.sampled_from(BRINGING), st.just(Work.BACKFILL), _NTH, _DIES)
RESULTS: Story = (
    *A_TABLE,
    Land(KEYS[0], File.REJECTED),
    Land(KEYS[1]),
    Deliver(),
    Deliver(),
    Aim(Step.ENTERED, Work.MESSAGE),
    Ops.REFUSED,
)
FILES_WITHOUT_A_COMMIT: Story = (
    *A_TABLE,
    Land(),
    Deliver(),
    Aim(Step.WRITTEN, Work.JOB, 0, Trouble.DIES_BEFORE),
    *SHARED,
    Aim(Step.WRITTEN, Work.JOB, 0, Trouble.DIES_BEFORE),
    CleanUp(),
    *map(Land, KEYS[:2]),
    Deliver(),
    Begin(Work.CLEAN_UP),
    Aim(Step.WRITTEN, Work.JOB),
)
COMPACTED: Story = (
    *A_TABLE,
    Land(),
    Time.REST,
    CleanUp(),
    Begin(Work.COMPACT),
    Go(0, 30),
    Time.COURSE,
    Begin(Work.CLEAN_UP),
)
_EXISTING: Story = (*A_TABLE, *map(Source, NAMES))
A_BACKFILL: Story = (*_EXISTING, Aim(Step.COPIED, Work.BACKFILL), Begin(Work.BACKFILL, 2))
# Its claim ends while it hangs, and another one begins.
_ANOTHER: Story = (CleanUp(1), Begin(Work.BACKFILL, 2), Go(0, 20))
A_LATE_BACKFILL: Story = (*_EXISTING, Aim(Step.LISTED, Work.BACKFILL), *_ANOTHER)
A_LATE_COPY: Story = (*_EXISTING, Aim(Step.BEGUN, Work.BACKFILL), *_ANOTHER)
OPENINGS = {
    "nothing": NOTHING,
    "a table": A_TABLE,
    "waiting together": WAITING_TOGETHER,
    "a group loses a member": A_GROUP_LOSES_A_MEMBER,
    "versions": VERSIONS,
    "a change": A_CHANGE,
    "batches": BATCHES,
    "a key of the whole table": BEYOND,
    "failed files": FAILED,
    "two drivers": TWO_DRIVERS,
    "two shared runs": TWO_SHARED_RUNS,
    "rows with keys": KEYED,
    "turns": TURNS,
    "turns of the latest rows": LATEST_TURNS,
    "turns of compared files": COMPARED,
    "a compaction": COMPACTED,
    "results": RESULTS,
    "a backfill": A_BACKFILL,
    "a late backfill": A_LATE_BACKFILL,
    "a late copy": A_LATE_COPY,
    "files without a commit": FILES_WITHOUT_A_COMMIT,
}
# All but "replaces versions", with which the ledger may not lose an entry.
_CONTRACTS = [each for each in CONTRACTS if each != "replaces versions"]
_UNDO = st.builds(Undo, st.integers(1, 4), st.sampled_from(["", TABLE]))
_EVENTS: dict[Events, int] = {
    st.builds(Go, _NTH, st.sampled_from([1, 2, 3, 5, 8, 30])): 16,
    st.builds(Begin, st.sampled_from(_ORDINARY), _NTH): 12,
    st.builds(Begin, st.sampled_from([each for each in Work if each is not Work.REALIGN]), _NTH): 4,
    st.builds(Break, _NTH, st.sampled_from(Trouble)): 6,
    AIMED_AT_RESULTS: 2,
    AIMED_AT_FILES: 1,
    st.sampled_from(Ops): 1,
    st.one_of(
        st.builds(Begin, st.just(Work.BACKFILL), _NTH),
        AIMED_AT_COPIES,
        st.builds(Source, st.sampled_from(NAMES)),
        st.builds(Land, st.sampled_from([f"{TARGET}{name}" for name in NAMES[:3]]), _FILES),
        st.builds(Expire),
    ): 2,
    st.builds(Land, st.sampled_from(KEYS), _FILES, st.sampled_from([None, None, b"same"])): 4,
    st.builds(Lag, _NTH, st.integers(0, 3)): 2,
    st.builds(Declare, _NTH, st.sampled_from([RunState.FAILED, RunState.CANCELLED])): 1,
    st.builds(Meddle, _NTH, st.booleans()): 1,
    st.builds(Change, st.sampled_from(sorted(CHANGES)), st.sampled_from([TABLE, OTHER_TABLE])): 2,
    _UNDO: 1,
    st.sampled_from([Time.COURSE, Time.REST, Time.REDELIVERY, Time.SWEEP, Time.COMES_AGAIN]): 2,
    st.one_of(
        st.builds(Ask, st.integers(1, 2)),
        st.builds(Batch, st.sampled_from(["monday", "tuesday"]), _FILES),
        st.builds(Lose, _NTH),
        st.sampled_from(Skew),
        st.builds(LoseRun, _NTH),
        st.builds(LoseEntry, _NTH),
        st.builds(Contract, st.sampled_from(_CONTRACTS)),
        st.builds(Forge, st.sampled_from(Forgery), _NTH),
    ): 2,
}
_PART = st.lists(weighted(_EVENTS), max_size=14)
_REALIGNED_PART = st.lists(
    weighted({each: often for each, often in _EVENTS.items() if each is not _UNDO}), max_size=14
)
_RESTORED: Story = (Restoration.RESTORE, Begin(Work.REALIGN))
# What was in flight during a run of the command is found by the next one.
_AT_LAST: Story = (
    Finish(),
    Restoration.REALIGNED,
    Time.REST,
    Restoration.REALIGNED,
    Restoration.SETTLED,
)


def explore(
    runs: int,
    start: int,
    told: Callable[[Stage], None] = lambda stage: None,
    *,
    openings: Sequence[Story] = tuple(OPENINGS.values()),
) -> None:
    """Play this number of schedules, the same for the same `start`; raise as `stories.explore`."""
    drawn = st.builds(flat, st.sampled_from(openings), *(_PART,) * 4)
    explore_with(lambda story: told(play(story)), drawn, runs, start)


def explore_restorations(runs: int, start: int, told: Callable[[Stage], None]) -> None:
    """Play schedules in which the catalog is restored and realigned; raise as `explore`."""
    opening, backup = st.sampled_from(list(OPENINGS.values())), st.just((Restoration.BACKUP,))
    part = _REALIGNED_PART
    before = (opening, part, backup, part, part)
    drawn = st.builds(flat, *before, st.just(_RESTORED), part, st.just(_AT_LAST))
    explore_with(lambda story: told(play(story)), drawn, runs, start)
